import { mkdir, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { type Argv, createRunner, type Runner } from "@fairlead/kernel";

/** A server on a loopback port of this machine that lives as long as the rehearsal. */
export interface LocalServer {
  /** `127.0.0.1:PORT` */
  readonly at: string;
  stop(): Promise<void>;
}

/**
 * The npm registry is installed where the rehearsal works: it is a large tree, and no part of what is built or
 * released. A dependency of it names another by a tag, which can be moved.
 */
const VERDACCIO = { dependencies: { verdaccio: "6.10.4" }, overrides: { "node-fetch": "2.7.0" } };

/** An npm registry that has nothing yet and takes packages of anyone who has an account. */
export async function startNpmRegistry(runner: Runner, dir: string): Promise<LocalServer> {
  const at = await freeAddress();
  await mkdir(dir, { recursive: true });
  const config = {
    storage: join(dir, "storage"),
    listen: at,
    web: { enable: false },
    auth: { htpasswd: { file: join(dir, "htpasswd"), max_users: 1 } },
    uplinks: {},
    packages: { "**": { access: "$all", publish: "$authenticated" } },
    log: { type: "stdout", level: "warn" },
    max_body_size: "100mb",
  };
  await writeFile(join(dir, "config.yaml"), JSON.stringify(config));
  await writeFile(join(dir, "package.json"), JSON.stringify(VERDACCIO));
  await runner.run(["npm", "install", `--prefix=${dir}`, "--no-audit", "--no-fund", "--silent"]);
  const program = join(dir, "node_modules/.bin/verdaccio");
  return startServer([program, "--config", join(dir, "config.yaml")], at, "/-/ping");
}

/** An account at a registry; its token stands for trusted publishing, which only GitHub's own jobs have. */
export async function npmToken({ at }: LocalServer): Promise<string> {
  const name = "rehearsal";
  const body = JSON.stringify({ name, password: "not a secret" });
  const headers = { "content-type": "application/json" };
  const answer = await fetch(`http://${at}/-/user/org.couchdb.user:${name}`, { method: "PUT", headers, body });
  const { token }: { token?: string } = JSON.parse(await answer.text());
  if (token === undefined) throw new Error(`the npm registry made no account: ${answer.status}`);
  return token;
}

/** A registry of images and charts: Debian's `docker-registry`, which is the CNCF's distribution. */
export async function startImageRegistry(dir: string): Promise<LocalServer> {
  const at = await freeAddress();
  await mkdir(dir, { recursive: true });
  const config = {
    version: 0.1,
    log: { level: "error", accesslog: { disabled: true } },
    storage: { filesystem: { rootdirectory: join(dir, "storage") } },
    http: { addr: at, secret: "not a secret" },
  };
  await writeFile(join(dir, "config.yaml"), JSON.stringify(config));
  return startServer(["docker-registry", "serve", join(dir, "config.yaml")], at, "/v2/");
}

async function startServer(argv: Argv, at: string, path: string): Promise<LocalServer> {
  const stop = new AbortController();
  const ended = createRunner()
    .run(["setpriv", "--pdeathsig", "KILL", ...argv], { signal: stop.signal, timeoutMs: 0 })
    .then(
      () => new Error(`${argv[0]} ended`),
      (error: unknown) => (error instanceof Error ? error : new Error(String(error))),
    );
  let failure: Error | undefined;
  void ended.then((error) => {
    failure = error;
  });
  while (!(await answers(`http://${at}${path}`))) {
    if (failure !== undefined) throw failure;
    await setTimeout(200);
  }
  return {
    at,
    stop: async () => {
      stop.abort();
      await ended;
    },
  };
}

async function answers(url: string): Promise<boolean> {
  return fetch(url).then(
    ({ ok }) => ok,
    () => false,
  );
}

function freeAddress(): Promise<string> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once("error", reject);
    server.listen(0, "127.0.0.1", () => {
      const address = server.address();
      const port = typeof address === "object" && address !== null ? address.port : 0;
      server.close(() => resolve(`127.0.0.1:${port}`));
    });
  });
}
