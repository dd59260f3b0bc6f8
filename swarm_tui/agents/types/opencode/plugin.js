// A plugin of opencode: records in the agent's state folder what the agent does and asks, and delivers answers.
// The lines and the answer files have the format of hook.py. Only Node's standard library, no dependencies.
import { appendFileSync, existsSync, mkdirSync, readFileSync } from "node:fs"
import { join } from "node:path"

const POLL_MS = 250
const TEXT_LIMIT = 8_000
const LINE_LIMIT = 60_000

const cut = (text) => String(text ?? "").slice(0, TEXT_LIMIT)

const described = (kind, request) => {
  if (kind === "question") {
    const questions = request.questions.map((each) => ({ ...each, multiSelect: Boolean(each.multiple) }))
    return { kind: "PermissionRequest", tool: "AskUserQuestion", input: { questions } }
  }
  const command = (request.patterns ?? []).join(" ")
  return { kind: "PermissionRequest", tool: request.permission, input: { command: cut(command) }, is_cut: command.length > TEXT_LIMIT }
}

const replyTo = (kind, request, answer) => {
  const isDenied = answer.verdict === "deny"
  if (kind === "permission") {
    const reply = isDenied ? "reject" : answer.is_remembered ? "always" : "once"
    return ["reply", { reply, message: answer.text || undefined }]
  }
  if (isDenied) return ["reject", {}]
  const given = request.questions.map((each) => answer.answers?.[each.question] ?? answer.text ?? "")
  return ["reply", { answers: given.map((each) => (Array.isArray(each) ? each : [each]).map(String)) }]
}

export const SwarmTui = async ({ serverUrl }) => {
  const state = process.env.MNGR_AGENT_STATE_DIR
  // The terminal loads plugins too. mngr sets this variable for the server only.
  if (!state || process.env.MNGR_OPENCODE_ROLE !== "server") return {}
  const folder = join(state, "plugin/swarm")
  const answers = join(folder, "answers")
  const open = new Map()
  const words = new Map()
  mkdirSync(answers, { recursive: true })

  const record = (event, fields) => {
    const line = JSON.stringify({ at: Date.now() / 1000, event, ...fields })
    if (line.length < LINE_LIMIT) appendFileSync(join(folder, "events.jsonl"), line + "\n")
  }
  const isRoot = (session) => {
    const file = join(state, "opencode_root_session")
    return !existsSync(file) || readFileSync(file, "utf8").trim() === session
  }
  const send = async (id, { kind, request }) => {
    const [action, body] = replyTo(kind, request, JSON.parse(readFileSync(join(answers, id + ".json"), "utf8")))
    const response = await fetch(new URL(`/${kind}/${id}/${action}`, serverUrl), {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body),
    })
    if (!response.ok) record("closed", { id, why: `opencode rejected the answer (${response.status})` })
  }
  const timer = setInterval(() => {
    for (const [id, asked] of open) {
      if (asked.isSent || !existsSync(join(answers, id + ".json"))) continue
      asked.isSent = true
      send(id, asked).catch((error) => record("closed", { id, why: cut(error) }))
    }
  }, POLL_MS)
  timer.unref?.()
  record("started", {})

  const handlers = {
    "permission.asked": (request) => ask("permission", request),
    "question.asked": (request) => ask("question", request),
    "permission.replied": ({ requestID }) => close(requestID),
    "question.replied": ({ requestID }) => close(requestID),
    "question.rejected": ({ requestID }) => close(requestID),
    "session.status": ({ sessionID, status }) => {
      if (isRoot(sessionID)) record("status", { ...status, words: cut(words.get(sessionID)) })
    },
    "message.part.updated": ({ part }) => {
      // The part of a user's message has no end.
      if (part?.type === "text" && part.time?.end) words.set(part.sessionID, part.text)
    },
    "message.updated": ({ info }) => {
      if (info?.role !== "assistant" || !info.time?.completed) return
      const { id, sessionID, providerID, modelID, cost, tokens, error } = info
      const data = error?.data ?? {}
      const failure = error && { name: error.name, message: cut(data.message), status: data.statusCode }
      record("message", { id, model: modelID, provider: providerID, cost, tokens, failure, is_root: isRoot(sessionID) })
    },
  }
  const ask = (kind, request) => {
    open.set(request.id, { kind, request, isSent: false })
    record("asked", { id: request.id, ...described(kind, request) })
  }
  const close = (id) => {
    record("closed", { id, why: open.get(id)?.isSent ? "answered" : "on the screen" })
    open.delete(id)
  }
  return {
    event: async ({ event }) => {
      try {
        handlers[event.type]?.(event.properties ?? {})
      } catch (error) {
        record("failed", { type: event.type, error: cut(error) })
      }
    },
  }
}
