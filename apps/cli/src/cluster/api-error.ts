import { errorText, fieldsOf, stringOf } from "@fairlead/base";
import { CommandFailure } from "../frame/errors.ts";

/** What an API server answers in the place of what was asked for. */
export class ApiError extends CommandFailure {
  /** HTTP's. */
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

/** Characters of an answer that is not a Status. */
const SHOWN = 200;

export function refusal(status: number, body: string, { server, file }: ApiServer): ApiError {
  const said = messageIn(body);
  if (status === 401) {
    return new ApiError(status, `the API server ${server} does not accept the credentials of ${file}: sign in again`);
  }
  const forbidden = status === 403 ? forbiddenIn(said) : undefined;
  if (forbidden !== undefined) return new ApiError(status, `${mayNot(forbidden)} (${server})`);
  return new ApiError(status, `the API server ${server} answers ${status}${said === "" ? "" : `: ${said}`}`);
}

export interface ApiServer {
  readonly server: string;
  readonly file: string;
}

/** What there is instead of an answer: no connection, a certificate that is not trusted, credentials that fail. */
export function unreachable(error: unknown, { server }: ApiServer): CommandFailure {
  return new CommandFailure(`the API server ${server} does not answer: ${errorText(innermost(error))}`, {
    cause: error,
  });
}

/** A page of a proxy on the way, for example. */
export function notJson(body: string, { server }: ApiServer, cause: unknown): CommandFailure {
  return new CommandFailure(`the API server ${server} gives an answer that is not JSON: ${messageIn(body)}`, { cause });
}

/** `fetch` says "fetch failed"; its cause says why. */
function innermost(error: unknown): unknown {
  return error instanceof Error && error.cause instanceof Error ? innermost(error.cause) : error;
}

/** The message of a Status, else the beginning of what came, in a line. */
function messageIn(body: string): string {
  try {
    const message = stringOf(fieldsOf(JSON.parse(body))["message"]);
    if (message !== undefined) return message;
  } catch {
    // A proxy before the server answers with a page.
  }
  return body.trim().slice(0, SHOWN).replaceAll(/\s+/g, " ");
}

export interface Forbidden {
  readonly user: string;
  readonly verb: string;
  /** `nodes`, `pods/exec` */
  readonly resource: string;
  /** Empty: the core group. */
  readonly group: string;
  /** Undefined: all namespaces, or the resource is not namespaced. */
  readonly namespace: string | undefined;
}

/** As k8s.io/apiserver says it (`ForbiddenMessage`). */
const FORBIDDEN =
  /is forbidden: User "([^"]*)" cannot (\S+) resource "([^"]+)" in API group "([^"]*)" (?:in the namespace "([^"]+)"|at the cluster scope)/;

/** Undefined: the message of an API server says something else. */
export function forbiddenIn(message: string): Forbidden | undefined {
  const [, user, verb, resource, group, namespace] = FORBIDDEN.exec(message) ?? [];
  if (user === undefined || verb === undefined || resource === undefined || group === undefined) return undefined;
  return { user, verb, resource, group, namespace };
}

/** The user, the denied access, and the rule that allows it. What is listed is watched, too, by one request or two. */
export function mayNot(forbidden: Forbidden): string {
  const { user, resource, group } = forbidden;
  const verbs = LISTS.includes(forbidden.verb) ? LISTS : [forbidden.verb];
  // Of a Namespace the server names its own, in which no Role is yet.
  const namespace = resource === "namespaces" ? undefined : forbidden.namespace;
  const where = namespace === undefined ? "in the whole cluster" : `in namespace ${namespace}`;
  const rule = `apiGroups: [${JSON.stringify(group)}], resources: [${resource}], verbs: [${verbs.join(", ")}]`;
  const kind = namespace === undefined ? "ClusterRole" : "Role";
  return `user ${user} may not ${verbs[0]} ${resource} ${where}; a ${kind} with this rule allows it: {${rule}}`;
}

const LISTS: readonly string[] = ["list", "watch"];
