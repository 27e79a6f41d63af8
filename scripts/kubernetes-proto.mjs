// Writes kubernetes.proto of packages/testkit: the messages of Kubernetes' own generated.proto files that the kinds of a
// service proxy are made of, whole, as the modules k8s.io/api and k8s.io/apimachinery have them. It needs Go.
//
//   node scripts/kubernetes-proto.mjs v0.37.1 FOLDER
//
// FOLDER: below which it is written by its path in this repository. `pnpm kubernetes` compares it with the one here.
import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";

const ROOTS = ["Unknown", "WatchEvent", "Status", "ServiceList", "NodeList", "EndpointSliceList", "ServiceCIDRList"];
const FILES = [
  ["k8s.io/apimachinery", "pkg/runtime"],
  ["k8s.io/apimachinery", "pkg/util/intstr"],
  ["k8s.io/apimachinery", "pkg/api/resource"],
  ["k8s.io/apimachinery", "pkg/apis/meta/v1"],
  ["k8s.io/api", "discovery/v1"],
  ["k8s.io/api", "core/v1"],
  ["k8s.io/api", "networking/v1"],
];

const [version = "", folder] = process.argv.slice(2);
if (!/^v0\.\d+\.\d+/.test(version) || folder === undefined) {
  throw new Error("give the version of k8s.io/api, such as v0.37.1, and a folder");
}

const clashes = new Set();
const folders = new Map(["k8s.io/api", "k8s.io/apimachinery"].map((module) => [module, folderOf(module)]));
// The first of a name: runtime's TypeMeta is around objects, not that of meta/v1; and Endpoints are not read.
const found = new Map();
for (const [module, folder] of FILES) {
  const text = readFileSync(join(folders.get(module), folder, "generated.proto"), "utf8");
  for (const [name, message] of messagesIn(text, `${module}/${folder}`)) {
    if (!found.has(name)) found.set(name, message);
    else if (!["TypeMeta", "EndpointPort"].includes(name)) clashes.add(name);
  }
}
const wanted = new Set();
for (const root of ROOTS) want(root);
const clash = [...clashes].filter((name) => wanted.has(name));
if (clash.length > 0) throw new Error(`two messages are called ${clash.join(" and ")}`);
const out = [`// Written from k8s.io/api and k8s.io/apimachinery by scripts/kubernetes-proto.mjs: do not edit.\n`];
out.push('syntax = "proto2";\n');
let of = "";
for (const [name, { from, fields }] of found) {
  if (!wanted.has(name)) continue;
  if (from !== of) out.push(`\n// ${from}\n`);
  of = from;
  out.push(`\nmessage ${name} {\n${fields.map(({ line }) => `  ${line}\n`).join("")}}\n`);
}
const file = join(folder, "packages/testkit/src/api-server/protobuf/kubernetes.proto");
mkdirSync(dirname(file), { recursive: true });
writeFileSync(file, out.join(""));

function folderOf(module) {
  const argv = ["mod", "download", "-json", `${module}@${version}`];
  const env = { ...process.env, GOFLAGS: "-mod=mod", GOWORK: "off" };
  return JSON.parse(execFileSync("go", argv, { cwd: tmpdir(), env, encoding: "utf8" })).Dir;
}

/** Comments go, and so do the packages in front of types. */
function messagesIn(text, from) {
  const bare = text.replaceAll(/^\s*\/\/.*\n/gm, "").replaceAll(/\.?(?:k8s\.io\.)[\w.]+\.(\w+)/g, "$1");
  return Array.from(bare.matchAll(/^message (\w+) \{\n([^}]*)\}/gm), ([, name, body]) => {
    const fields = body
      .split("\n")
      .map((line) => line.trim())
      .filter((line) => line !== "")
      .map((line) => ({ line, type: /^(?:optional |repeated |map<string, )([\w]+)/.exec(line)?.[1] }));
    return [name, { from, fields }];
  });
}

function want(name) {
  const message = found.get(name);
  if (message === undefined || wanted.has(name)) return;
  wanted.add(name);
  for (const { type } of message.fields) want(type);
}
