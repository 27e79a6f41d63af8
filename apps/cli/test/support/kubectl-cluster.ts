import { FakeRunner, type ProgramAnswer } from "@fairlead/kernel/fake";

type Json = Record<string, unknown>;

// biome-ignore lint/suspicious/noExplicitAny: objects of any kind; a path that is not there fails its test
type Any = any;

/** What a node's programs print in a pod, by the whole command or by its first word. */
export type Programs = Readonly<Record<string, string>>;

/** A kubectl over a cluster in memory. Its controller of DaemonSets has done its work whenever somebody asks. */
export class KubectlCluster {
  readonly runner = new FakeRunner({ kubectl: (args, input) => this.#kubectl(args, input) });
  readonly objects = new Map<string, Any>();
  readonly calls: (readonly string[])[] = [];
  /** Nodes on which a DaemonSet's pods do not become ready: `node daemonset`. */
  readonly unready = new Set<string>();
  programs: (node: string) => Programs = () => ({});
  /** Called before each change. */
  onChange: (argv: readonly string[]) => void = () => {};
  /** Called before objects of a kind are read. */
  onGet: (kind: string) => void = () => {};

  add(object: Any): void {
    const { kind, metadata } = object;
    const key = `${kind.toLowerCase()}/${metadata.name}`;
    const before = this.objects.get(key);
    const generation = (before?.metadata.generation ?? 0) + 1;
    const uid = before?.metadata.uid ?? `uid-${this.objects.size}`;
    this.objects.set(key, {
      ...object,
      metadata: { ...metadata, uid, generation },
      status: { ...object.status, observedGeneration: generation },
    });
  }

  #kubectl(argv: readonly string[], input: string): ProgramAnswer {
    this.calls.push(argv);
    const [verb = "", ...args] = argv.filter((one) => !one.startsWith("--kubeconfig="));
    if (["patch", "apply", "delete"].includes(verb)) this.onChange(argv);
    const stdout = this.#answer(verb, args, input);
    return stdout ?? { stderr: `kubectl ${argv.join(" ")} failed`, exitCode: 1 };
  }

  #answer(verb: string, args: readonly string[], input: string): string | undefined {
    const flags = args.filter((one) => one.startsWith("--"));
    const [kind = "", name] = args.filter((one) => !one.startsWith("--"));
    if (verb === "api-resources") return "subnets.kubeovn.io\n";
    if (verb === "wait") return "";
    if (verb === "apply") return this.#apply(JSON.parse(input));
    if (verb === "create" || verb === "replace") return this.#write(JSON.parse(input));
    if (verb === "exec") return this.#exec(kind, args.slice(args.indexOf("--") + 1));
    this.#reconcile();
    if (verb === "get") return this.#get(kind, name, flags);
    if (verb === "delete") return this.#delete(kind, name, flags);
    const found = this.#named(kind, name, flags);
    if (verb !== "patch" || found === undefined) return undefined;
    this.add(merged(found, JSON.parse(flags.find((flag) => flag.startsWith("--patch="))?.slice(8) ?? "{}")));
    return "";
  }

  #apply(object: Any): string {
    for (const one of object.items ?? [object]) this.add(one);
    return "";
  }

  /** Refuses to write over what is newer than what was read. */
  #write(object: Any): string | undefined {
    const key = `${object.kind.toLowerCase()}/${object.metadata.name}`;
    const { resourceVersion } = object.metadata;
    if (this.objects.get(key)?.metadata.resourceVersion !== resourceVersion) return undefined;
    this.add({
      ...object,
      metadata: { ...object.metadata, resourceVersion: String(Number(resourceVersion ?? 0) + 1) },
    });
    return JSON.stringify(this.objects.get(key));
  }

  #exec(pod: string, command: readonly string[]): string | undefined {
    const node = this.objects.get(`pod/${pod}`)?.spec.nodeName;
    const programs = this.programs(node);
    return programs[command.join(" ")] ?? programs[command[0] ?? ""];
  }

  #get(kind: string, name: string | undefined, flags: readonly string[]): string {
    this.onGet(kind);
    if (name !== undefined) return JSON.stringify(this.#named(kind, name, flags) ?? "").replace(/^""$/, "");
    const items = [...this.objects.values()].filter((one) => `${one.kind.toLowerCase()}s` === kind.split(".")[0]);
    return JSON.stringify({ items: items.filter((one) => selects(flags, one)) });
  }

  /** An object without a namespace is in whichever is asked for. */
  #named(kind: string, name: string | undefined, flags: readonly string[]): Any {
    const found = this.objects.get(`${kind}/${name}`);
    const namespace = found?.metadata.namespace;
    return namespace === undefined || flags.includes(`--namespace=${namespace}`) ? found : undefined;
  }

  #delete(kinds: string, name: string | undefined, flags: readonly string[]): string {
    for (const [key, object] of this.objects) {
      const isNamed = name === undefined ? selects(flags, object) : object.metadata.name === name;
      if (kinds.split(",").includes(object.kind.toLowerCase()) && isNamed) this.objects.delete(key);
    }
    return "";
  }

  #reconcile(): void {
    const all = [...this.objects.values()];
    for (const [key, { kind, metadata }] of this.objects) {
      if (kind === "Pod" && metadata.ownerReferences !== undefined) this.objects.delete(key);
    }
    for (const daemonSet of all.filter(({ kind }) => kind === "DaemonSet")) {
      for (const node of all.filter(({ kind }) => kind === "Node")) {
        if (isPlaced(daemonSet, node)) this.#startPod(daemonSet, node);
      }
    }
  }

  #startPod({ metadata, spec }: Any, node: Any): void {
    const name = `${metadata.name}-${node.metadata.name}`;
    const isReady = !this.unready.has(`${node.metadata.name} ${metadata.name}`);
    this.add({
      kind: "Pod",
      metadata: { name, labels: spec.selector.matchLabels, ownerReferences: [{ uid: metadata.uid }] },
      spec: { nodeName: node.metadata.name },
      status: { conditions: [{ type: "Ready", status: isReady ? "True" : "False" }] },
    });
  }
}

function selects(flags: readonly string[], { metadata }: Any): boolean {
  const [, text = ""] = /^--selector=(.*)$/.exec(flags.find((flag) => flag.startsWith("--selector=")) ?? "") ?? [];
  return text
    .split(",")
    .filter(Boolean)
    .every((one) => `${one.split("=")[0]}=${metadata.labels?.[one.split("=")[0] ?? ""]}` === one);
}

function isPlaced({ spec }: Any, { metadata }: Any): boolean {
  const required = spec.template.spec.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution;
  if (required === undefined) return true;
  return required.nodeSelectorTerms.some(({ matchExpressions }: Any) =>
    matchExpressions.every(
      ({ key, operator, values }: Any) => values.includes(metadata.labels?.[key]) === (operator === "In"),
    ),
  );
}

/** A merge patch (RFC 7386). */
function merged(target: unknown, patch: unknown): unknown {
  if (typeof patch !== "object" || patch === null || Array.isArray(patch)) return patch;
  const result: Json = { ...(target as Json | undefined) };
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) delete result[key];
    else result[key] = merged(result[key], value);
  }
  return result;
}
