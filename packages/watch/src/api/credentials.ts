/** What authenticates at the API server: kubeconfig's users, service accounts' tokens and exec plugins. */

// biome-ignore lint/style/noRestrictedImports: a kubeconfig's own program; the runner is for the kernel's tools
import { type ChildProcess, spawn } from "node:child_process";
import { readFile } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import {
  type Clock,
  errorText,
  isObject,
  objectAt,
  objectsAt,
  parseJSON,
  type RawObject,
  textAt,
  valueAt,
} from "@fairlead/base";
import { CORE_SCHEMA, load, mergeTag, YAMLException } from "js-yaml";
import { type Credentials, quoted, type TlsOptions, withoutPasswords } from "./http.ts";

interface CredentialOptions {
  /** `exec` is followed; else a kubeconfig that has it is refused. */
  readonly allowExec: boolean;
  /** Whether they would go over TLS: otherwise only the name of the impersonated user is sent, as with client-go. */
  readonly secure: boolean;
  readonly warn: (text: string) => void;
  readonly clock: Clock;
}

/**
 * The credentials of a kubeconfig, its files read anew at each call. Tokens, token files and certificates are read
 * here, `exec` is run.
 *
 * @throws ConnectionError where the kubeconfig asks for what isn't allowed
 */
export function kubeconfigCredentials(kubeconfig: Kubeconfig, options: CredentialOptions): () => Promise<Credentials> {
  const { user, file } = kubeconfig;
  if (isObject(valueAt(user, "auth-provider"))) {
    throw new ConnectionError(
      `${file}: users[].user.auth-provider is not supported: use exec with a credential plugin ` +
        "(client.authentication.k8s.io, with --allow-exec-credentials), tokenFile, token or a client certificate",
    );
  }
  const asks = isObject(valueAt(user, "exec"));
  if (asks && !options.allowExec) {
    throw new ConnectionError(
      `${file}: users[].user.exec gets its credentials from programs, which --allow-exec-credentials allows; ` +
        "or use tokenFile, token or a client certificate",
    );
  }
  if (!options.secure) return async () => ({ headers: impersonation(user), tls: {} });
  const plugin = asks ? execCredentials(kubeconfig, options.warn, options.clock) : async () => NOTHING;
  return async () => {
    const { headers, tls } = await plugin();
    const bearer = await bearerToken(kubeconfig);
    return {
      headers: { ...headers, ...authorization(user, bearer), ...impersonation(user) },
      tls: { ...tls, ...(await tlsOf(kubeconfig)) },
    };
  };
}

/**
 * The user's token, as client-go: the file's wins over the one written in the kubeconfig.
 *
 * @throws ConnectionError when the file is not there or does not hold one token
 */
export async function bearerToken(kubeconfig: Kubeconfig): Promise<string | undefined> {
  const tokenFile = textAt(kubeconfig.user, "tokenFile");
  if (tokenFile !== undefined) return readToken(pathIn(kubeconfig, tokenFile));
  return textAt(kubeconfig.user, "token");
}

/** @throws ConnectionError when the file is not there or empty */
export async function readToken(path: string): Promise<string> {
  const token = (await readText("token file", path)).trim();
  if (token === "" || /\s/.test(token)) throw new ConnectionError(`token file ${path} does not hold one token`);
  return token;
}

/** @throws ConnectionError */
export async function readText(what: string, path: string): Promise<string> {
  try {
    return await readFile(path, "utf8");
  } catch (error) {
    throw new ConnectionError(`${what} ${path}: ${errorText(error)}`);
  }
}

/**
 * The current context's cluster and user of a kubeconfig (client-go's clientcmd/api/v1), fields as written there. Why
 * the agent does not use the client library's: README, "Why not the client library".
 */
export interface Kubeconfig {
  /** Path of the file, which relative paths in it are relative to. */
  readonly file: string;
  /** The context's name; "": the only one has none. */
  readonly context: string;
  /** The cluster's fields. */
  readonly cluster: RawObject;
  /** Empty where the context names no user. */
  readonly user: RawObject;
  /** The context's; absent: it names none. */
  readonly namespace?: string;
}

/**
 * A kubeconfig, as it is written.
 *
 * @throws ConnectionError when it cannot be read or is not one
 */
export async function readKubeconfigFile(file: string): Promise<RawObject> {
  return parse(file, await readText("--kubeconfig", file));
}

/**
 * One context of a kubeconfig.
 *
 * @param asked the context's name; "" or absent: the current one
 * @throws ConnectionError naming the field and what would be right
 */
export function chosenContext(file: string, raw: RawObject, asked = ""): Kubeconfig {
  const contextName = asked === "" ? textAt(raw, "current-context") : asked;
  const context =
    contextName === undefined ? onlyContext(file, raw) : named(file, raw, "contexts", "context", contextName);
  const cluster = textAt(context, "cluster");
  if (cluster === undefined)
    throw new ConnectionError(
      `${file}: the ${asked === "" ? "current context" : `context "${asked}"`} names no cluster`,
    );
  const user = textAt(context, "user");
  const namespace = textAt(context, "namespace");
  return {
    file,
    context: contextName ?? textAt(objectsAt(raw, "contexts")[0], "name") ?? "",
    ...(namespace !== undefined && { namespace }),
    cluster: named(file, raw, "clusters", "cluster", cluster),
    user: user === undefined ? {} : named(file, raw, "users", "user", user),
  };
}

/**
 * The kubeconfig, its files or the pod's service account can't be used. The message says where and what would be right.
 */
export class ConnectionError extends Error {
  override readonly name = "ConnectionError";
}

/** Milliseconds after which it is said that the program still runs, and after which it is ended. */
const SLOW_AFTER = 10_000;
const ENDED_AFTER = 60_000;

/**
 * Credentials that a program gives: `exec` of a kubeconfig's user (KEP-541), as client-go's plugin/pkg/client/auth/exec
 * reads it.
 * Kept until they expire, by the wall clock or by the time that passes: the clock may be set back.
 *
 * @param warn gets a program that takes long
 * @returns reads the credentials @throws ConnectionError what the program did instead of giving them
 * @throws ConnectionError it has no command or apiVersion
 */
export function execCredentials(
  kubeconfig: Kubeconfig,
  warn: (text: string) => void,
  clock: Clock,
): () => Promise<Credentials> {
  const program = programOf(kubeconfig);
  const version = textAt(objectAt(kubeconfig.user, "exec"), "apiVersion");
  const onSlow = () =>
    warn(
      `${kubeconfig.file}: users[].user.exec: ${program.command} has been running for ${SLOW_AFTER / 1000} s; ` +
        `requests to the API server wait for it, and it is killed after ${ENDED_AFTER / 1000} s`,
    );
  let kept: (Expiring & { readonly until: number }) | undefined;
  let asking: Promise<Expiring> | undefined;
  return async () => {
    if (kept !== undefined && clock.now() < kept.expires && clock.monotonic() < kept.until) return kept.credentials;
    // Several watches begin at once: one run of the program is enough for them.
    asking ??= outputOf(program, clock, onSlow)
      .then((output) => credentialsIn(output, version))
      .catch((error) => {
        const why = withoutPasswords(errorText(error));
        throw new ConnectionError(`${kubeconfig.file}: users[].user.exec: ${why}`);
      })
      .finally(() => {
        asking = undefined;
      });
    const given = await asking;
    kept = { ...given, until: clock.monotonic() + given.expires - clock.now() };
    return kept.credentials;
  };
}

const NOTHING: Credentials = { headers: {}, tls: {} };

function authorization(user: RawObject, bearer: string | undefined): Record<string, string> {
  if (bearer !== undefined) return { authorization: `Bearer ${bearer}` };
  const name = textAt(user, "username");
  if (name === undefined) return {};
  return { authorization: `Basic ${Buffer.from(`${name}:${textAt(user, "password") ?? ""}`).toString("base64")}` };
}

function impersonation(user: RawObject): Record<string, string> {
  const as = textAt(user, "as");
  return as === undefined ? {} : { "impersonate-user": as };
}

async function tlsOf(kubeconfig: Kubeconfig): Promise<TlsOptions> {
  const { cluster, user } = kubeconfig;
  const ca = await pem(kubeconfig, cluster, "certificate-authority");
  const cert = await pem(kubeconfig, user, "client-certificate");
  const key = await pem(kubeconfig, user, "client-key");
  const servername = textAt(cluster, "tls-server-name");
  return {
    ...(ca === undefined ? {} : { ca }),
    ...(cert === undefined ? {} : { cert }),
    ...(key === undefined ? {} : { key }),
    ...(servername === undefined ? {} : { servername }),
    ...(valueAt(cluster, "insecure-skip-tls-verify") === true ? { rejectUnauthorized: false } : {}),
  };
}

/** `field-data` (base64) wins over the file that `field` names, as in client-go. */
async function pem(kubeconfig: Kubeconfig, from: RawObject, field: string): Promise<string | undefined> {
  const data = textAt(from, `${field}-data`);
  if (data !== undefined) return Buffer.from(data, "base64").toString("utf8");
  const path = textAt(from, field);
  return path === undefined ? undefined : readText(field, pathIn(kubeconfig, path));
}

/** A path in a kubeconfig is relative to the kubeconfig's folder. */
function pathIn(kubeconfig: Kubeconfig, path: string): string {
  return resolve(dirname(kubeconfig.file), path);
}

function parse(file: string, text: string): RawObject {
  const raw = parseYaml(file, text);
  if (!isObject(raw)) throw new ConnectionError(`${file} is not a kubeconfig (apiVersion: v1, kind: Config)`);
  return raw;
}

function parseYaml(file: string, text: string): unknown {
  try {
    return load(text, { schema: CORE_SCHEMA.withTags(mergeTag), maxAliases: 100 });
  } catch (error) {
    throw new ConnectionError(
      `${file} is not YAML: ${error instanceof YAMLException ? error.toString(true) : errorText(error)}`,
    );
  }
}

function onlyContext(file: string, raw: RawObject): RawObject {
  const contexts = objectsAt(raw, "contexts");
  const [context] = contexts;
  if (context === undefined || contexts.length > 1) {
    throw new ConnectionError(`${file}: current-context is empty; it must name one of the contexts`);
  }
  return objectAt(context, "context");
}

function named(file: string, raw: RawObject, list: string, item: string, name: string): RawObject {
  const entries = objectsAt(raw, list);
  const found = entries.find((entry) => valueAt(entry, "name") === name);
  if (found === undefined) {
    const names = entries.flatMap((entry) => textAt(entry, "name") ?? []).join(", ");
    throw new ConnectionError(`${file}: ${list} has no ${item} "${name}"${names === "" ? "" : `; it has: ${names}`}`);
  }
  return objectAt(found, item);
}

interface Expiring {
  readonly credentials: Credentials;
  /** Milliseconds since the epoch. */
  readonly expires: number;
}

interface Program {
  readonly command: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string | undefined>>;
}

function programOf({ file, user }: Kubeconfig): Program {
  const exec = objectAt(user, "exec");
  const command = textAt(exec, "command");
  const missing = ["command", "apiVersion"].find((field) => textAt(exec, field) === undefined);
  if (command === undefined || missing !== undefined)
    throw new ConnectionError(`${file}: users[].user.exec has no ${missing}`);
  const args = valueAt(exec, "args");
  const own = objectsAt(exec, "env").map((entry) => [textAt(entry, "name") ?? "", textAt(entry, "value") ?? ""]);
  const info = { apiVersion: valueAt(exec, "apiVersion"), kind: "ExecCredential", spec: { interactive: false } };
  return {
    // A path is relative to the kubeconfig; a name is looked for in PATH.
    command: command.includes("/") ? resolve(dirname(file), command) : command,
    args: Array.isArray(args) ? args.map(String) : [],
    env: { ...process.env, ...Object.fromEntries(own), KUBERNETES_EXEC_INFO: JSON.stringify(info) },
  };
}

/** @throws Error without a word of the output, which may hold half a secret */
function credentialsIn(output: string, version: string | undefined): Expiring {
  const given = parseJSON(output);
  if (textAt(given, "kind") !== "ExecCredential") throw new Error("the program did not write an ExecCredential");
  const found = textAt(given, "apiVersion");
  if (found !== undefined && found !== version) {
    throw new Error(`the program wrote an ExecCredential of ${found}, expected ${version ?? "no apiVersion"}`);
  }
  const status = objectAt(given, "status");
  const token = textAt(status, "token");
  const [cert, key] = [textAt(status, "clientCertificateData"), textAt(status, "clientKeyData")];
  if ((cert === undefined) !== (key === undefined)) {
    throw new Error("the program wrote only one of client certificate and key; both are required");
  }
  if (token === undefined && cert === undefined) throw new Error("the program wrote neither a token nor a certificate");
  const expires = Date.parse(textAt(status, "expirationTimestamp") ?? "");
  return {
    credentials: {
      headers: token === undefined ? {} : { authorization: `Bearer ${token}` },
      tls: cert === undefined || key === undefined ? {} : { cert, key },
    },
    expires: Number.isNaN(expires) ? Number.POSITIVE_INFINITY : expires,
  };
}

/** Bytes of an ExecCredential, a certificate chain included. */
const MAX_OUTPUT = 2 ** 20;
const MAX_COMPLAINT = 2 ** 12;

/**
 * Runs a program and gives what it writes. It gets no input: one that asks for a password would wait for ever.
 *
 * @param onSlow reported once when it has not ended for `slowAfter`
 * @throws Error it can't be started, ends with another code than 0, writes too much, or has not ended after
 * `endedAfter`; with what it wrote to standard error
 */
function outputOf(program: Program, clock: Clock, onSlow: () => void): Promise<string> {
  const { command, args, env } = program;
  return new Promise((resolve, reject) => {
    // A group of its own, so that what it has started ends with it.
    const child = spawn(command, args, { env, stdio: ["ignore", "pipe", "pipe"], detached: true });
    const output = beginningOf(child.stdout, MAX_OUTPUT);
    const complaint = beginningOf(child.stderr, MAX_COMPLAINT);
    const finish = (problem: string | undefined) => {
      for (const cancel of timers) cancel();
      const said = complaint().toString("utf8");
      if (problem === undefined) resolve(output().toString("utf8"));
      else reject(new Error(`${command} ${problem}${said.trim() === "" ? "" : ` and printed ${quoted(said)}`}`));
    };
    const end = (problem: string) => {
      endGroup(child);
      finish(problem);
    };
    const timers = [
      clock.after(SLOW_AFTER, onSlow),
      clock.after(ENDED_AFTER, () => end(`did not exit within ${ENDED_AFTER / 1000} s and was killed`)),
    ];
    child.on("error", (error) => finish(`failed to start: ${error.message}`));
    child.stdout.on(
      "data",
      () => output().length > MAX_OUTPUT && end(`wrote more than ${MAX_OUTPUT} bytes and was killed`),
    );
    child.on("close", (code, signal) =>
      finish(code === 0 ? undefined : signal === null ? `exited with code ${code}` : `was killed by ${signal}`),
    );
  });
}

function endGroup(child: ChildProcess): void {
  child.stdout?.destroy();
  child.stderr?.destroy();
  try {
    if (child.pid !== undefined) process.kill(-child.pid, "SIGKILL");
  } catch {
    // It has ended by itself just now.
  }
}

/** @returns what has come so far, not more than a chunk beyond `most` bytes */
function beginningOf(stream: NodeJS.ReadableStream, most: number): () => Buffer {
  const chunks: Buffer[] = [];
  let size = 0;
  stream.on("data", (chunk: Buffer) => {
    if (size <= most) chunks.push(chunk);
    size += chunk.length;
  });
  stream.on("error", () => {});
  return () => Buffer.concat(chunks);
}
