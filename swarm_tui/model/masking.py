"""Mask secrets in text, by form and by name.

The source of a form is a page of the issuer, or a rule id of gitleaks (github.com/gitleaks/gitleaks) or detect-secrets.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from swarm_tui.model.text import plain, plain_lines


class SecretForm(NamedTuple):
    """The format of a secret. If the pattern has a group, only the group is the secret, and it is masked completely."""

    name: str
    source: str
    needle: str
    """Text that every match contains. The pattern is tried only if the text contains it."""
    pattern: re.Pattern[str]


def _form(name: str, source: str, needle: str, pattern: str) -> SecretForm:
    return SecretForm(name, source, needle, re.compile(pattern))


_B: Final = r"(?<![A-Za-z0-9])"
_UUID: Final = r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}"

FORMS: Final = (
    _form("private key", "RFC 7468", "PRIVATE KEY", r"-----BEGIN[ A-Z0-9_-]{0,100}PRIVATE KEY(?: BLOCK)?-----((?s:.){1,20000}?)(?=-----END[ A-Z0-9_-]{0,100}PRIVATE KEY|\Z)"),
    _form("password in an address", "RFC 3986, 3.2.1", "://", r"://[^/\s:@'\"]{0,100}:([^/\s@'\"]{3,200})@"),
    _form("bearer token", "RFC 6750", "earer ", r"[Bb]earer +([A-Za-z0-9._~+/-]{12,}=*)"),
    _form("basic authorization", "RFC 7617", "asic ", rf"{_B}[Bb]asic +([A-Za-z0-9+/_-]{{8,}}={{0,2}})(?![A-Za-z0-9+/])"),
    _form("JSON web token", "RFC 7519", "ey", rf"{_B}(?:ey[A-Za-z0-9]{{17,}}\.ey|eyJ)[A-Za-z0-9_=-]{{8,}}\.[A-Za-z0-9/\\_=-]{{8,}}(?:\.(?:[A-Za-z0-9/\\_+-]{{4,}}={{0,2}})?)?"),
    _form("JSON web token in base64", "gitleaks jwt-base64", "ZXlK", rf"{_B}ZXlK[A-Za-z0-9+/_-]{{40,}}={{0,2}}"),
    _form("user of curl", "gitleaks curl-auth-user", "curl", r"\bcurl\b(?s:.){0,400}?\s(?:-u|--user)[\s=]{0,5}['\"]?[^\s:'\"]{0,100}:([^\s'\"]{3,200})"),
    _form("AWS access key", "docs.aws.amazon.com/IAM reference_identifiers", "A", rf"{_B}(?:A3T[A-Z0-9]|AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{{16}}"),
    _form("AWS secret key", "detect-secrets AWSKeyDetector", "", r"(?i:aws.{0,20}?(?:key|pwd|pw|password|pass|token).{0,20}?)\\?['\"]([0-9a-zA-Z/+]{40})\\?['\"]"),
    _form("Amazon Bedrock key", "gitleaks aws-amazon-bedrock-api-key-long-lived", "ABSK", rf"{_B}ABSK[A-Za-z0-9+/]{{40,269}}={{0,2}}"),
    _form("Amazon Bedrock key, short", "gitleaks aws-amazon-bedrock-api-key-short-lived", "bedrock-api-key-", r"bedrock-api-key-[A-Za-z0-9+/=]{20,}"),
    _form("GitHub token", "docs.github.com about-authentication-to-github", "gh", r"gh[pousr]_[A-Za-z0-9]{16,}"),
    _form("GitHub fine-grained token", "docs.github.com about-authentication-to-github", "github_pat_", r"github_pat_[A-Za-z0-9_]{16,}"),
    _form("GitLab token", "docs.gitlab.com/security/tokens", "gl", rf"{_B}gl(?:pat|cbt|dt|ffct|ft|imt|agent|oas|ptt|rt|soat|rtr)-[A-Za-z0-9_.-]{{16,}}"),
    _form("GitLab registration token", "gitleaks gitlab-rrt", "GR1348941", r"GR1348941[\w-]{20}"),
    _form("GitLab session", "gitleaks gitlab-session-cookie", "_gitlab_session=", r"_gitlab_session=([0-9a-z]{16,})"),
    _form("Slack token", "docs.slack.dev/authentication/tokens", "xox", r"xox[a-z](?:\.xox[a-z])?-[A-Za-z0-9-]{8,}"),
    _form("Slack app token", "docs.slack.dev/authentication/tokens", "xapp-", r"(?i:xapp-\d-[A-Z0-9]+-\d+-[a-z0-9]+)"),
    _form("Slack hook", "docs.slack.dev incoming-webhooks", "hooks.slack.com/", r"hooks\.slack\.com/(?:services|workflows|triggers)/([A-Za-z0-9+/_-]{20,})"),
    _form("Discord hook", "docs.discord.com/developers/resources/webhook", "/api/webhooks/", r"/api/webhooks/\d{10,}/([\w-]{30,})"),
    _form("Discord bot token", "detect-secrets DiscordBotTokenDetector", ".", rf"{_B}[MNO][A-Za-z\d_-]{{23,25}}\.[A-Za-z\d_-]{{6}}\.[A-Za-z\d_-]{{27,}}"),
    _form("Teams hook", "gitleaks microsoft-teams-webhook", "webhook.office.com/", r"webhook\.office\.com/(?:webhookb2/)?([^\s\"'\\]{20,})"),
    _form("SoftLayer key in an address", "detect-secrets SoftlayerDetector", "softlayer.com/", r"softlayer\.com/(?:soap|xmlrpc)/v3[^/\s]{0,3}/([A-Za-z0-9]{20,})"),
    _form("Google API key", "cloud.google.com/docs/authentication/api-keys", "AIza", r"AIza[0-9A-Za-z_-]{35}"),
    _form("Google access token", "developers.google.com/identity/protocols/oauth2", "ya29.", r"ya29\.[0-9A-Za-z_-]{20,}"),
    _form("Google client secret", "developers.google.com/identity/protocols/oauth2", "GOCSPX-", r"GOCSPX-[A-Za-z0-9_-]{20,}"),
    _form("Azure storage key", "learn.microsoft.com storage-account-keys", "ccountKey=", r"[Aa]ccountKey=([A-Za-z0-9+/=]{40,})"),
    _form("Azure shared access", "learn.microsoft.com shared-access-signature", "sig=", r"[?&]sig=([A-Za-z0-9%+/=_-]{20,})"),
    _form("Azure client secret", "gitleaks azure-ad-client-secret", "Q~", rf"{_B}[A-Za-z0-9_~.]{{3}}\dQ~[A-Za-z0-9_~.-]{{31,34}}"),
    _form("Azure DevOps connection", "learn.microsoft.com service-bus", "SharedAccessKey=", r"SharedAccessKey=([A-Za-z0-9+/=]{20,})"),
    _form("Anthropic key", "docs.anthropic.com/api", "sk-ant-", r"sk-ant-[A-Za-z0-9_-]{10,}"),
    _form("OpenAI key and similar", "platform.openai.com/docs/api-reference", "sk-", r"(?<![A-Za-z0-9_-])sk-[A-Za-z0-9_-]{16,}"),
    _form("Stripe key", "docs.stripe.com/keys", "k_", rf"{_B}(?:sk|rk)_(?:test|live|prod)_[A-Za-z0-9]{{10,}}"),
    _form("Stripe hook secret", "docs.stripe.com/webhooks", "whsec_", r"whsec_[A-Za-z0-9+/=]{16,}"),
    _form("Square token", "gitleaks square-access-token", "EAAA", rf"{_B}EAAA[\w-]{{22,60}}"),
    _form("Square token or secret", "developer.squareup.com", "sq0", rf"{_B}sq0(?:atp|csp|idp)-[\w-]{{22,60}}"),
    _form("Facebook token", "gitleaks facebook-page-access-token", "EAA", rf"{_B}EAA[MC][A-Za-z0-9]{{100,}}"),
    _form("Facebook app token", "gitleaks facebook-access-token", "", r"\b\d{15,16}(?:\||%7C|%)[0-9A-Za-z_-]{27,40}\b"),
    _form("Hugging Face token", "huggingface.co/docs/hub/security-tokens", "hf_", r"(?<![A-Za-z0-9_])hf_[A-Za-z0-9]{30,}"),
    _form("Hugging Face organization token", "gitleaks huggingface-organization-api-token", "api_org_", r"api_org_[A-Za-z0-9]{30,}"),
    _form("npm token", "docs.npmjs.com/about-access-tokens", "npm_", r"(?i:npm_[A-Za-z0-9]{36})"),
    _form("npmrc", "docs.npmjs.com/cli/configuring-npm/npmrc", ":_", r":_(?:authToken|auth|password)\s*=\s*([^\s$]{4,})"),
    _form("PyPI token", "pypi.org/help/#apitoken", "pypi-", r"pypi-[A-Za-z0-9_-]{50,}"),
    _form("RubyGems key", "guides.rubygems.org/api-key-scopes", "rubygems_", r"rubygems_[a-f0-9]{48}"),
    _form("Clojars token", "gitleaks clojars-api-token", "", r"(?i:CLOJARS_[a-z0-9]{60})"),
    _form("SendGrid key", "docs.sendgrid.com/ui/account-and-settings/api-keys", "SG.", rf"{_B}SG\.[A-Za-z0-9=_.-]{{40,}}"),
    _form("Sendinblue key", "gitleaks sendinblue-api-token", "xkeysib-", r"xkeysib-[a-f0-9]{64}-[A-Za-z0-9]{16}"),
    _form("Mailgun key", "documentation.mailgun.com", "key-", r"(?<![A-Za-z0-9_-])(?:pub)?key-[a-f0-9]{32}"),
    _form("Mailchimp key", "mailchimp.com/developer", "-us", rf"{_B}[0-9a-z]{{32}}-us\d{{1,2}}\b"),
    _form("Telegram bot token", "core.telegram.org/bots/api", ":", rf"{_B}\d{{5,16}}:(?:A[A-Za-z0-9_-]{{33,34}}|[A-Za-z0-9_-]{{35}})(?![A-Za-z0-9_-])"),
    _form("Twilio key", "www.twilio.com/docs/iam/api-keys", "", rf"{_B}(?:SK|AC)[0-9a-zA-F]{{32}}(?![0-9a-zA-Z])"),
    _form("DigitalOcean token", "docs.digitalocean.com/reference/api", "_v1_", rf"(?i:{_B}do[opr]_v1_[a-f0-9]{{64}})"),
    _form("Vault token", "developer.hashicorp.com/vault/docs/concepts/tokens", "hv", rf"{_B}hv[sbr]\.[\w-]{{20,300}}"),
    _form("Vault token, old", "developer.hashicorp.com/vault/docs/concepts/tokens", "s.", r"(?<![A-Za-z0-9_.])s\.(?=[A-Za-z0-9]*\d)[A-Za-z0-9]{24}(?![A-Za-z0-9])"),
    _form("Terraform token", "developer.hashicorp.com/terraform", ".atlasv1.", r"[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_=-]{60,70}"),
    _form("age key", "age-encryption.org/v1", "AGE-SECRET-KEY-1", r"AGE-SECRET-KEY-1[A-Z0-9]{20,}"),
    _form("1Password key", "gitleaks 1password-secret-key", "A3-", rf"{_B}A3-[A-Z0-9]{{6}}-(?:[A-Z0-9]{{11}}|[A-Z0-9]{{6}}-[A-Z0-9]{{5}})(?:-[A-Z0-9]{{5}}){{3}}"),
    _form("1Password service token", "gitleaks 1password-service-account-token", "ops_eyJ", r"ops_eyJ[A-Za-z0-9+/]{40,}={0,3}"),
    _form("Adobe secret", "gitleaks adobe-client-secret", "p8e-", rf"{_B}p8e-[A-Za-z0-9]{{32}}"),
    _form("Airtable token", "airtable.com/developers/web/api", "pat", rf"{_B}pat[A-Za-z0-9]{{14}}\.[a-f0-9]{{64}}"),
    _form("Alibaba key", "gitleaks alibaba-access-key-id", "LTAI", rf"{_B}LTAI[A-Za-z0-9]{{12,24}}(?![A-Za-z0-9])"),
    _form("Artifactory key", "gitleaks artifactory-api-key", "AKC", rf"{_B}AKC[A-Za-z0-9]{{10,}}"),
    _form("Artifactory password", "detect-secrets ArtifactoryDetector", "AP", r"(?:(?<=[\s=:\"'])|^)AP[\dA-F](?=[A-Za-z]*\d)[A-Za-z0-9]{8,}(?=[\s\"'\\]|$)"),
    _form("Artifactory reference", "gitleaks artifactory-reference-token", "cmVmd", rf"{_B}cmVmd[A-Za-z0-9]{{59}}"),
    _form("Atlassian token", "gitleaks atlassian-api-token", "ATATT3", r"ATATT3[A-Za-z0-9_=-]{100,}"),
    _form("Authress key", "gitleaks authress-service-client-access-key", "_", r"(?:sc|ext|scauth|authress)_[A-Za-z0-9]{5,30}\.[A-Za-z0-9]{4,6}\.acc[_-][A-Za-z0-9-]{10,32}\.[A-Za-z0-9+/_=-]{30,120}"),
    _form("ClickHouse key", "gitleaks clickhouse-cloud-api-secret-key", "4b1d", rf"{_B}4b1d[A-Za-z0-9]{{38}}(?![A-Za-z0-9])"),
    _form("Cloudflare origin key", "gitleaks cloudflare-origin-ca-key", "v1.0-", r"v1\.0-[a-f0-9]{24}-[a-f0-9]{146}"),
    _form("Databricks token", "docs.databricks.com/dev-tools/auth", "dapi", rf"{_B}dapi[a-f0-9]{{32}}(?:-\d)?"),
    _form("Defined Networking token", "gitleaks defined-networking-api-token", "dnkey-", r"dnkey-[A-Za-z0-9=_-]{26}-[A-Za-z0-9=_-]{52}"),
    _form("Doppler token", "docs.doppler.com/docs/service-tokens", "dp.", r"\bdp\.(?:pt|st|ct|sa|scim|audit)\.[A-Za-z0-9._-]{40,}"),
    _form("Dropbox token", "gitleaks dropbox-short-lived-api-token", "sl.", rf"{_B}sl\.[A-Za-z0-9=_-]{{100,}}"),
    _form("Duffel token", "gitleaks duffel-api-token", "duffel_", r"duffel_(?:test|live)_[A-Za-z0-9_=-]{43}"),
    _form("Dynatrace token", "docs.dynatrace.com", "dt0c01.", r"dt0c01\.[A-Za-z0-9]{24}\.[A-Za-z0-9]{64}"),
    _form("EasyPost key", "gitleaks easypost-api-token", "EZ", rf"{_B}EZ[AT]K[A-Za-z0-9]{{54}}"),
    _form("Flutterwave key", "gitleaks flutterwave-secret-key", "FLW", r"FLW(?:SECK|PUBK)_TEST-[A-Ha-h0-9]{12,32}(?:-X)?"),
    _form("Fly token", "gitleaks flyio-access-token", "f", rf"{_B}(?:fo1_[\w-]{{43}}|fm1[ar]_[A-Za-z0-9+/]{{40,}}={{0,3}}|fm2_[A-Za-z0-9+/]{{40,}}={{0,3}})"),
    _form("Frame.io token", "gitleaks frameio-api-token", "fio-u-", r"fio-u-[A-Za-z0-9_=-]{64}"),
    _form("Grafana key", "gitleaks grafana-api-key", "eyJrIjoi", rf"{_B}eyJrIjoi[A-Za-z0-9]{{40,400}}={{0,3}}"),
    _form("Grafana token", "gitleaks grafana-service-account-token", "gl", rf"(?i:{_B}gl(?:c_[A-Za-z0-9+/]{{32,400}}={{0,3}}|sa_[A-Za-z0-9]{{32}}_[A-Fa-f0-9]{{8}}))"),
    _form("Harness key", "gitleaks harness-api-key", "at.", r"[ps]at\.[A-Za-z0-9_-]{22}\.[A-Za-z0-9]{24}\.[A-Za-z0-9]{20}"),
    _form("Heroku key", "gitleaks heroku-api-key-v2", "HRKU-", r"HRKU-[0-9a-zA-Z_-]{36,}"),
    _form("Infracost token", "gitleaks infracost-api-token", "ico-", rf"{_B}ico-[A-Za-z0-9]{{32}}"),
    _form("Intra42 secret", "gitleaks intra42-client-secret", "s-s4t2", r"s-s4t2(?:ud|af)-[A-Fa-f0-9]{64}"),
    _form("Linear key", "gitleaks linear-api-key", "lin_api_", r"lin_api_[A-Za-z0-9]{40}"),
    _form("MaxMind key", "gitleaks maxmind-license-key", "_mmk", r"[A-Za-z0-9]{6}_[A-Za-z0-9]{29}_mmk"),
    _form("Mapbox token", "docs.mapbox.com/accounts/guides/tokens", "k.ey", r"[ps]k\.ey[A-Za-z0-9]{40,}\.[A-Za-z0-9_-]{20,}"),
    _form("New Relic key", "docs.newrelic.com api-keys", "NR", rf"{_B}(?:NRAK|NRJS|NRII|NRRA)-[A-Za-z0-9-]{{19,}}"),
    _form("Notion token", "developers.notion.com", "ntn_", rf"{_B}ntn_[0-9]{{11}}[A-Za-z0-9]{{35}}"),
    _form("NuGet password", "gitleaks nuget-config-password", "assword", r"(?i:<add key=\\?\"(?:ClearText)?Password\\?\"\s*value=\\?\"([^\"]{3,200})\\?\")"),
    _form("Octopus key", "gitleaks octopus-deploy-api-key", "API-", rf"{_B}API-[A-Z0-9]{{26}}(?![A-Z0-9])"),
    _form("OpenShift token", "gitleaks openshift-user-token", "sha256~", r"sha256~[\w-]{43}"),
    _form("Perplexity key", "gitleaks perplexity-api-key", "pplx-", r"pplx-[A-Za-z0-9]{48}"),
    _form("Plaid token", "gitleaks plaid-api-token", "access-", rf"access-(?:sandbox|development|production)-{_UUID}"),
    _form("PlanetScale secret", "gitleaks planetscale-password", "pscale_", r"(?i:pscale_(?:tkn|oauth|pw)_[\w=.-]{32,64})"),
    _form("Postman key", "gitleaks postman-api-token", "PMAK-", r"PMAK-[A-Fa-f0-9]{24}-[A-Fa-f0-9]{34}"),
    _form("Prefect token", "gitleaks prefect-api-token", "pnu_", rf"{_B}pnu_[A-Za-z0-9]{{36}}"),
    _form("Pulumi token", "gitleaks pulumi-api-token", "pul-", rf"{_B}pul-[a-f0-9]{{40}}"),
    _form("ReadMe token", "gitleaks readme-api-token", "rdme_", r"rdme_[a-z0-9]{70}"),
    _form("Scalingo token", "gitleaks scalingo-api-token", "tk-us-", rf"{_B}tk-us-[\w-]{{48}}"),
    _form("Sentry token", "gitleaks sentry-user-token", "sntry", r"sntry(?:u_[a-f0-9]{64}|s_eyJ[A-Za-z0-9+/]{20,}={0,2}_[A-Za-z0-9+/]{43})"),
    _form("SettleMint token", "gitleaks settlemint-application-access-token", "sm_", r"sm_(?:aat|pat|sat)_[A-Za-z0-9]{16}"),
    _form("Shippo token", "gitleaks shippo-api-token", "shippo_", r"shippo_(?:live|test)_[a-fA-F0-9]{40}"),
    _form("Shopify token", "shopify.dev/docs/apps/auth", "shp", r"shp(?:at|ca|pa|ss)_[a-fA-F0-9]{32}"),
    _form("Sidekiq address", "gitleaks sidekiq-sensitive-url", "contribsys", r"(?i:([a-f0-9]{8}:[a-f0-9]{8})@(?:gems|enterprise)\.contribsys)"),
    _form("Sonar token", "gitleaks sonar-api-token", "sq", rf"{_B}sq[upa]_[A-Za-z0-9]{{40}}"),
    _form("Sourcegraph token", "gitleaks sourcegraph-access-token", "sgp_", r"sgp_(?:(?:[a-fA-F0-9]{16}|local)_)?[a-fA-F0-9]{40}"),
    _form("Tailscale key", "tailscale.com/kb/1085/auth-keys", "tskey-", r"tskey-[a-z]+-[A-Za-z0-9-]{10,}"),
    _form("Twitter bearer token", "gitleaks twitter-bearer-token", "AAAAAAAAAAAAAAAA", r"A{16,22}[A-Za-z0-9%]{80,}"),
    _form("Typeform token", "gitleaks typeform-api-token", "tfp_", r"tfp_[A-Za-z0-9._=-]{40,}"),
    _form("Yandex token", "gitleaks yandex-access-token", "t1.", rf"{_B}t1\.[A-Za-z0-9_-]+={{0,2}}\.[A-Za-z0-9_-]{{86}}={{0,2}}"),
    _form("Yandex key", "gitleaks yandex-api-key", "AQVN", rf"{_B}AQVN[A-Za-z0-9_-]{{35,38}}"),
)  # fmt: skip


_WORDS: Final = frozenset(
    {"TOKEN", "SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "PASS", "PWD", "PW", "CREDENTIAL", "CREDENTIALS", "APIKEY"}
)
_ENDINGS: Final = (
    *("API_KEY", "ACCESS_KEY", "SECRET_KEY", "PRIVATE_KEY", "ACCESS_KEY_ID", "ACCOUNT_KEY", "AUTH_KEY", "MASTER_KEY"),
    *("ENCRYPTION_KEY", "SIGNING_KEY", "SHARED_KEY", "DEPLOY_KEY", "LICENSE_KEY", "STORAGE_KEY", "SERVICE_KEY"),
    *(
        "TOKEN",
        "PASSWORD",
        "PASSWD",
        "PWD",
        "SECRET",
        "APIKEY",
        "APIPASS",
        "ACCESSKEY",
        "SECRETKEY",
        "CONNECTION_STRING",
    ),
)
# The shell's current and previous folder.
_NO_SECRETS: Final = frozenset({"PWD", "OLDPWD"})
# Last words of names whose value is not the secret itself, such as TOKEN_COUNT.
_ABOUT_SECRETS: Final = frozenset({
    "COUNT", "TYPE", "LIMIT", "BUDGET", "NAME", "URL", "URI", "FILE", "PATH", "EXPIRES", "EXPIRY", "LENGTH", "LEN",
    "USAGE", "ENDPOINT", "FIELD", "HEADER", "POLICY", "HINT", "ENV", "VAR", "VERSION", "ALGORITHM", "AGE", "TTL",
    "CLASS", "FORM", "FORMS", "KIND", "PREFIX", "PATTERN", "STORE", "MANAGER", "PROVIDER", "COST", "RATE", "INDEX",
    "HELP", "LABEL", "PROMPT", "ERROR", "STATUS", "VALID", "REQUIRED", "ENABLED",
})  # fmt: skip


def is_secret_name(name: str) -> bool:
    """Return whether an environment variable with this name probably contains a secret."""
    upper = name.upper()
    if upper in _NO_SECRETS:
        return False
    return bool(_WORDS.intersection(upper.split("_"))) or upper.endswith(_ENDINGS)


def is_secret_key(name: str) -> bool:
    """Return the same for any spelling (`clientSecret`, `X-Api-Key`), except for names such as TOKEN_COUNT."""
    spelled = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name)
    spelled = re.sub(r"[^A-Za-z0-9]+", "_", spelled).strip("_").upper()
    return is_secret_name(spelled) and spelled.rpartition("_")[2] not in _ABOUT_SECRETS


MASK: Final = "•"
_SHOWN_OF_SECRET: Final = 4
_ESCAPES: Final = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[ -/]*[0-~]")
_BREAKS: Final = re.compile(r"\r?\n")
# A line break between two words, the words after such breaks, and the word before.
_CUT: Final = re.compile(r"(?<=\S)\r?\n(?=\S)")
_CUT_WORD: Final = re.compile(r"(?:\r?\n\S{1,400})+")
_WORD: Final = re.compile(r"\S+")
_WORD_END: Final = re.compile(r"\S{1,400}\Z")
_WORD_LIMIT: Final = 400
# The possible rest of a secret on the next line.
_REST_OF_SECRET: Final = re.compile(r"\r?\n([A-Za-z0-9_+/=.~-]{3,})(?=[\s\"'`,;&<\\)\]}]|$)")

_KEYWORD: Final = re.compile(
    r"(?i:token|secret|passw(?:or)?d|passphrase|pass(?=[\"'\s:=\]])|pwd?(?=[\"'\s:=\]])|credential|connection[_-]?string"
    r"|(?:api|access|private|account|auth|master|encryption|signing|shared|deploy|license|storage|service)[_. -]?key"
    r"|key(?=\\?[\"'\]\s:=]))"
)
_NAME_CHARACTERS: Final = re.compile(r"[\w.-]*\Z")
# The rest of a name, the separator, and the value, which is quoted or extends to the end of the word.
_BESIDE_NAME: Final = re.compile(
    r"""(?P<rest>[\w.-]{0,40})
    (?P<between>
        (?:\\*["'`])?\]?[ \t]{0,3}(?:(?:string|String)[ \t]+)?(?::{0,3}=|\?=|\+=|\.=|=>|:{1,3})>?[ \t]{0,5}
      | \\*["'`],[ \t]{0,3}(?=\\*["'`])
      | >\s{0,40}
      | (?:\\*["'`])?\]?[ \t]{1,20}
    )
    (?:[bfru]{0,2}(?P<quote>\\*["'`])(?P<quoted>(?:[^\n]|\n(?=\S)){1,500}?)(?P=quote)
      | (?P<element>[^<\s]{1,300}(?:\r?\n[^<\s]{1,300})?)(?=\s{0,40}</)
      | \\*["'`]?(?P<bare>[^\s"'`,;()\[\]{}<>|&\\]{1,500}))""",
    re.VERBOSE,
)
_HEADER: Final = re.compile(
    r"(?i:authorization|cookie|x-[a-z-]{0,30}(?:auth|key|token|secret)[a-z-]{0,20})\\?[\"']?[ \t]{0,3}[:=][ \t]{0,3}"
    r"\\?[\"']?(?:(?:basic|bearer|token|digest|apikey|negotiate)[ \t]+)?(?P<value>[^\s\"'\\<>{}$,;]{6,4000})"
)
_NO_VALUES: Final = frozenset({
    "none", "null", "nil", "true", "false", "str", "string", "int", "integer", "float", "bool", "boolean", "bytes",
    "any", "optional", "object", "dict", "list", "required", "secret", "token", "password", "passwd", "passphrase",
    "pass", "key", "value", "hidden", "masked", "redacted", "empty", "undefined", "unset", "example", "yes", "no",
    "not", "is", "in", "of", "to", "for", "and", "the", "a", "an", "from", "by", "with", "must", "should", "was",
    "has", "are", "or", "if", "else", "self", "cls", "return", "this", "text", "number", "bearer", "basic",
    "default",
})  # fmt: skip
# A long random value after the word "key", except 40 hexadecimal digits, which are a commit id.
_LONG_KEY: Final = re.compile(r"(?![0-9a-f]{40}\Z)(?=[^0-9]*[0-9])[A-Za-z0-9+/_-]{32,}={0,2}")
_IDENTIFIER: Final = re.compile(r"[A-Za-z_][A-Za-z_.]*")
_SHORT_NUMBER: Final = re.compile(r"[\d.,]{1,7}[kKmM%]?")


class _Span(NamedTuple):
    """The range of a secret in a text, and the number of leading characters that stay visible."""

    start: int
    end: int
    shown: int = 0


def mask_secrets(text: str) -> str:
    """Return the text with secrets masked."""
    # Masking a secret can reveal another one directly after it.
    while (masked := _masked_once(text)) != text:
        text = masked
    return text


def _masked_once(text: str) -> str:
    bare, places = _without(text, _ESCAPES, range(len(text))) if "\x1b" in text else (text, range(len(text)))
    spans = list(_spans_by_form(bare))
    spans += _rests(bare, spans)
    spans += _split_spans(bare, spans)
    named = [span for span in _spans_by_name(bare) if not any(_overlap(span, other) for other in spans)]
    named += _rests(bare, named)
    if not (spans or named):
        return text
    characters = list(text)
    for start, end, shown in (*spans, *named):
        for place in places[start + shown : end]:
            if not text[place].isspace():
                characters[place] = MASK
    return "".join(characters)


def mask_pieces(pieces: Sequence[str]) -> list[str]:
    """Return the pieces of a text, such as a recording, with secrets masked, even if a secret spans pieces."""
    whole = "".join(pieces)
    masked = mask_secrets(whole)
    if masked == whole:
        return list(pieces)
    masked_pieces = []
    start = 0
    for piece in pieces:
        masked_pieces.append(masked[start : start + len(piece)])
        start += len(piece)
    return masked_pieces


def _without(text: str, left_out: re.Pattern[str], places: Sequence[int]) -> tuple[str, Sequence[int]]:
    """Return the text without matches of a pattern, and the original position of each remaining character."""
    kept: list[int] = []
    parts: list[str] = []
    start = 0
    for found in left_out.finditer(text):
        parts.append(text[start : found.start()])
        kept += places[start : found.start()]
        start = found.end()
    parts.append(text[start:])
    kept += places[start:]
    return "".join(parts), kept


def _overlap(one: _Span, other: _Span) -> bool:
    return one.start < other.end and other.start < one.end


def _spans_by_form(text: str) -> Iterator[_Span]:
    for form in FORMS:
        if form.needle in text:
            for found in form.pattern.finditer(text):
                # The prefix of a token names its service. No part of a password or key is safe to show.
                if form.pattern.groups:
                    yield _Span(*found.span(1))
                else:
                    yield _Span(*found.span(), _SHOWN_OF_SECRET)


def _rests(text: str, spans: Sequence[_Span]) -> Iterator[_Span]:
    """Yield the continuations of secrets after a line break, unless they look like an ordinary word."""
    for span in spans:
        end = span.end
        while found := _REST_OF_SECRET.match(text, end):
            rest = found[1]
            is_line = text[found.end() : found.end() + 1] not in (" ", "\t", ",")
            if not any(map(str.isdigit, rest)) and rest.islower() and not is_line:
                break
            yield _Span(*found.span(1))
            end = found.end()


def _split_spans(text: str, spans: Sequence[_Span]) -> Iterator[_Span]:
    """Yield the secrets that match a format only after line breaks are removed."""
    joined, places = _joined_words(text)
    for span in _spans_by_form(joined):
        found = _Span(places[span.start], places[span.end - 1] + 1, span.shown)
        if not any(_overlap(found, other) for other in spans):
            yield found


def _joined_words(text: str) -> tuple[str, list[int]]:
    """Return the words that line breaks may have split, joined and one per line, and the original positions."""
    parts: list[str] = []
    places: list[int] = []
    end = 0
    for cut in _CUT.finditer(text):
        if cut.start() < end:
            continue
        before = _WORD_END.search(text, max(end, cut.start() - _WORD_LIMIT), cut.start())
        after = _CUT_WORD.match(text, cut.start())
        if before is None or after is None:
            continue
        end = after.end()
        after_cut = ((cut.start() + word.start(), cut.start() + word.end()) for word in _WORD.finditer(after[0]))
        for start, stop in ((before.start(), cut.start()), *after_cut):
            parts.append(text[start:stop])
            places += range(start, stop)
        parts.append("\n")
        places.append(end - 1)
    return "".join(parts), places


def _spans_by_name(text: str) -> Iterator[_Span]:
    for found in _HEADER.finditer(text):
        if MASK not in found["value"] and not found["value"].isalpha():
            yield _Span(*found.span("value"))
    end = 0
    for keyword in _KEYWORD.finditer(text):
        if keyword.start() < end:
            continue
        before = _NAME_CHARACTERS.search(text, max(0, keyword.start() - 60), keyword.start())
        beside = _BESIDE_NAME.match(text, keyword.end())
        if beside is None:
            continue
        name = (before[0] if before else "") + keyword[0] + beside["rest"]
        group = beside.lastgroup or "bare"
        rest = _REST_OF_SECRET.match(text, beside.end())
        whole = _BREAKS.sub("", beside[group]) + (rest[1] if rest else "")
        is_named = is_secret_key(name) or _LONG_KEY.fullmatch(whole) is not None
        if is_named and _is_secret_value(name, beside, text):
            yield _Span(*beside.span(group))
            end = beside.end()


def _is_secret_value(name: str, beside: re.Match[str], text: str) -> bool:
    """Return whether the text after a secret's name is its value, rather than a type, expression or reference."""
    value, between = beside[beside.lastgroup or "bare"], beside["between"]
    sign = between.strip(" \t\r\n\"'`]\\")
    if MASK in value or value[0] in "$<{%*" or value.lower() in _NO_VALUES or value.lower() in name.lower():
        return False
    has_digit = any(map(str.isdigit, value))
    if beside["quoted"] is not None:
        is_one_word = not any(map(str.isspace, _BREAKS.sub("", value)))
        return len(value) > 2 and is_one_word and (bool(sign) or (len(value) > 7 and (has_digit or len(value) > 15)))
    if beside["element"] is not None:
        return len(value) > 3
    rest = _REST_OF_SECRET.match(text, beside.end()) if sign else None
    if rest is not None and len(rest[1]) > 5 and any(map(str.isdigit, rest[1])):
        return True
    if _SHORT_NUMBER.fullmatch(value):
        return False
    is_word = _IDENTIFIER.fullmatch(value) is not None
    if not sign:
        # Two words, as in .netrc and `--token VALUE`.
        return len(value) > 7 and has_digit
    if not is_word:
        return len(value) > 3 and (any(map(str.isalnum, value)))
    if len(value) > 15 and text[beside.start("bare") - 1] in "\"'`":
        return True
    if text[beside.end() : beside.end() + 1] in tuple("([{.,)") or "." in value:
        return False
    if name == name.upper() or (sign == "=" and between == "="):
        return True
    # In YAML the value is alone on its line; the name of a type would start with a capital letter.
    line_start = text.rfind("\n", 0, beside.start()) + 1
    is_alone = text[line_start : beside.start()].strip(" \t-\"'").isidentifier() or line_start == beside.start()
    return sign.endswith(":") and is_alone and value[0].islower() and text[beside.end() :][:1] in ("", "\n", "\r")


LONG_TEXT_LIMIT: Final = 20_000


def safe_line(text: str, limit: int = 500) -> str:
    """Return the text as one safe line of at most `limit` characters."""
    return mask_secrets(plain(text, limit))


def safe_lines(text: str, limit: int = LONG_TEXT_LIMIT) -> str:
    """Return the text as safe lines of at most `limit` characters in total."""
    is_cut = len(text) > limit
    shown = mask_secrets(plain_lines(text[:limit])).rstrip()
    return f"{shown}\n… ({len(text) - limit:,} characters more)" if is_cut else shown


def safe_decoded(raw: bytes, limit: int = LONG_TEXT_LIMIT) -> str:
    return safe_lines(raw.decode("utf-8", "replace"), limit)
