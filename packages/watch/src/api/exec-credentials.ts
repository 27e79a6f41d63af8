import { dirname, resolve } from "node:path";
import { type Clock, errorText, objectAt, objectsAt, parseJSON, textAt, valueAt } from "@fairlead/base";
import type { Credentials } from "./connection.ts";
import { ConnectionError } from "./connection-error.ts";
import { ENDED_AFTER, outputOf, type Program, SLOW_AFTER } from "./exec-process.ts";
import type { Kubeconfig } from "./kubeconfig.ts";
import { withoutPasswords } from "./redact.ts";

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

interface Expiring {
  readonly credentials: Credentials;
  /** Milliseconds since the epoch. */
  readonly expires: number;
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
