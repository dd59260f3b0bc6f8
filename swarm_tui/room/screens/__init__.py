"""The screens; each turns keys into actions and the store's changes into what its panels show."""
