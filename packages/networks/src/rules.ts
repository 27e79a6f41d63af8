/** Rules that decide about a service before the CIDRs, and the labels and names that they ask for. */
import { fieldsOf, stringOf } from "@fairlead/base";
import type { Service } from "@fairlead/core";
import type { RuledOwner } from "@fairlead/endpoint-filter";
import { type ResourceState, stateAfter } from "./facts.ts";
import { VPC_SELECTION } from "./source-kinds.ts";

/** Says which network owns a service, by an annotation of theirs or a label of their namespace. */
export type ServiceRule = ({ readonly annotation: string } | { readonly namespaceLabel: string }) & {
  readonly in?: readonly string[];
  /** The value must be none of these. */
  readonly notIn?: readonly string[];
  /** Nor the name of kube-ovn's default VPC; while that is not known the rule meets no Service. */
  readonly notInDefaultVPC?: true;
  readonly ownership: "ours" | "foreign";
  /** What of a foreign service is left to its network. Default: all of it. */
  readonly excludedFrontends?: RuledOwner["excludedFrontends"];
};

/** What rules have to be asked for alongside Services. */
export function ruleNeeds(rules: readonly ServiceRule[]) {
  return {
    namespaceLabels: new Set(rules.flatMap((rule) => ("namespaceLabel" in rule ? [rule.namespaceLabel] : []))),
    defaultVPC: rules.some(({ notInDefaultVPC }) => notInDefaultVPC === true),
  };
}

/** The labels of a namespace; undefined: it is not known. */
export type NamespaceLabels = (namespace: string) => Readonly<Record<string, string>> | undefined;

/** The first rule that a service meets decides; one that lacks the annotation or label meets none. */
export function serviceRule(
  rules: readonly ServiceRule[],
  labelsOf: NamespaceLabels,
  defaultVPCs: ReadonlySet<string> = NONE,
) {
  return (service: Service): RuledOwner | undefined => {
    for (const rule of rules) {
      const value = valueFor(rule, service, labelsOf);
      if (value === undefined || !meets(rule, value, defaultVPCs)) continue;
      const { ownership, excludedFrontends } = rule;
      return { ownership, why: `rule: ${describeRule(rule)}`, ...(excludedFrontends && { excludedFrontends }) };
    }
    return undefined;
  };
}

const NONE: ReadonlySet<string> = new Set();

/** `annotation ovn.kubernetes.io/vpc not in ovn-cluster: foreign` */
export function describeRule(rule: ServiceRule): string {
  const subject = "annotation" in rule ? `annotation ${rule.annotation}` : `namespace label ${rule.namespaceLabel}`;
  const excepted = [...(rule.notIn ?? []), ...(rule.notInDefaultVPC ? ["the default VPC"] : [])];
  const values = [
    ...(rule.in === undefined ? [] : [` in ${rule.in.join(", ")}`]),
    ...(excepted.length === 0 ? [] : [` not in ${excepted.join(", ")}`]),
  ];
  return `${subject}${values.join(" and")}: ${rule.ownership}`;
}

/** Labels of namespaces that rules ask for; a namespace without any is not there. */
export type KnownNamespaces = ReadonlyMap<string, Readonly<Record<string, string>>>;

/** What the rules for services say, and since the last look: the namespaces that they may say something else of. */
export interface RulesNow {
  /** Undefined: there are no rules. The same function as before while no label changed. */
  readonly rule: ((service: Service) => RuledOwner | undefined) | undefined;
  readonly changed: ReadonlySet<string>;
  /** They may say something else of each Service. */
  readonly all: boolean;
}

/** The rules for services with the labels of namespaces that they need. */
export class Namespaces {
  /** Whether any rule asks for the default VPC. */
  readonly asksForVPCs: boolean;
  readonly #rules: readonly ServiceRule[];
  readonly #names: ReadonlySet<string>;
  readonly #labels: Map<string, Readonly<Record<string, string>>>;
  /** Those that the agent before this one knew and no list has confirmed. */
  readonly #unconfirmed: Set<string>;
  #state: ResourceState = "waiting";
  #wasListed: boolean;
  readonly #vpcs: DefaultVPCs;
  #changed = new Set<string>();
  #allChanged = false;
  #rule: RulesNow["rule"];

  /** @param known what the agent before this one knew; undefined: nothing */
  constructor(rules: readonly ServiceRule[], known: KnownNamespaces | undefined, vpcs: readonly string[] = []) {
    this.#rules = rules;
    this.#vpcs = new DefaultVPCs(vpcs);
    const { namespaceLabels, defaultVPC } = ruleNeeds(rules);
    this.#names = namespaceLabels;
    this.asksForVPCs = defaultVPC;
    this.#labels = new Map(this.followed ? known : []);
    this.#unconfirmed = new Set(this.#labels.keys());
    this.#wasListed = known !== undefined;
    this.#rule = this.#made();
  }

  /** Whether any rule asks for namespaces. */
  get followed(): boolean {
    return this.#names.size > 0;
  }

  get state(): ResourceState {
    return this.#state;
  }

  get vpcs(): Pick<DefaultVPCs, "names" | "state"> {
    return this.#vpcs;
  }

  /** @returns whether it matters */
  setVPC(object: string, raw: unknown): boolean {
    const matters = this.#vpcs.set(object, raw);
    this.#allChanged ||= matters;
    return matters;
  }

  setVPCsState(state: Exclude<ResourceState, "waiting">): void {
    this.#vpcs.setState(state);
  }

  /** Nothing is waited for: what there is to know at a start is known. */
  get settled(): boolean {
    if (this.asksForVPCs && !this.#vpcs.settled) return false;
    return !this.followed || this.#wasListed || this.#state !== "waiting";
  }

  /** For a file that outlives the agent; undefined: they were never listed. */
  get known(): KnownNamespaces | undefined {
    return this.followed && this.#wasListed ? new Map(this.#labels) : undefined;
  }

  /**
   * @param raw a Namespace, straight from JSON and untrusted; undefined: it is gone
   * @returns whether it matters
   */
  set(namespace: string, raw: unknown): boolean {
    this.#unconfirmed.delete(namespace);
    const labels = this.#read(raw);
    if (JSON.stringify(labels) === JSON.stringify(this.#labels.get(namespace))) return false;
    if (labels === undefined) this.#labels.delete(namespace);
    else this.#labels.set(namespace, labels);
    this.#changed.add(namespace);
    return true;
  }

  setState(state: Exclude<ResourceState, "waiting">): void {
    this.#state = stateAfter(this.#state, state);
    if (state !== "listed") return;
    this.#wasListed = true;
    for (const gone of this.#unconfirmed) this.set(gone, undefined);
  }

  take(): RulesNow {
    const changed = this.#changed;
    const all = this.#allChanged;
    this.#changed = new Set();
    this.#allChanged = false;
    if (changed.size > 0 || all) this.#rule = this.#made();
    return { rule: this.#rule, changed, all };
  }

  #made(): RulesNow["rule"] {
    if (this.#rules.length === 0) return undefined;
    const labels = new Map(this.#labels);
    return serviceRule(this.#rules, (namespace) => labels.get(namespace), this.#vpcs.names);
  }

  /** Undefined: no label that a rule asks for. In the rules' order, so that equal labels are equal texts. */
  #read(raw: unknown): Readonly<Record<string, string>> | undefined {
    const labels = fieldsOf(fieldsOf(fieldsOf(raw)["metadata"])["labels"]);
    const found = [...this.#names].flatMap((name) => {
      const value = Object.hasOwn(labels, name) ? stringOf(labels[name]) : undefined;
      return value === undefined ? [] : [[name, value] as const];
    });
    return found.length === 0 ? undefined : Object.fromEntries(found);
  }
}

/**
 * The names of kube-ovn's default VPC, for rules that ask for them. Several are where its name was changed: the old one
 * says so for good. The last ones stay while no object names one: a CRD that is deleted takes all its objects with it.
 */
class DefaultVPCs {
  readonly #byObject = new Map<string, string>();
  #names: ReadonlySet<string>;
  #state: ResourceState = "waiting";

  /** @param known what the agent before this one knew */
  constructor(known: readonly string[] = []) {
    this.#names = new Set(known);
  }

  get names(): ReadonlySet<string> {
    return this.#names;
  }

  get state(): ResourceState {
    return this.#state;
  }

  /** Nothing is waited for: what there is to know at a start is known. */
  get settled(): boolean {
    return this.#names.size > 0 || this.#state !== "waiting";
  }

  /**
   * @param raw a Vpc, straight from JSON and untrusted; undefined: it is gone
   * @returns whether there are other names than before
   */
  set(object: string, raw: unknown): boolean {
    const name = VPC_SELECTION.read(raw);
    if (name === undefined) this.#byObject.delete(object);
    else this.#byObject.set(object, name);
    const names = new Set([...this.#byObject.values()].sort());
    if (names.size === 0 || [...names].join() === [...this.#names].join()) return false;
    this.#names = names;
    return true;
  }

  setState(state: Exclude<ResourceState, "waiting">): void {
    this.#state = stateAfter(this.#state, state);
  }
}

function valueFor(rule: ServiceRule, service: Service, labelsOf: NamespaceLabels): string | undefined {
  const [from, name] =
    "annotation" in rule ? [service.annotations, rule.annotation] : [labelsOf(service.namespace), rule.namespaceLabel];
  return from !== undefined && Object.hasOwn(from, name) ? from[name] : undefined;
}

function meets(rule: ServiceRule, value: string, defaultVPCs: ReadonlySet<string>): boolean {
  if (rule.notInDefaultVPC === true && (defaultVPCs.size === 0 || defaultVPCs.has(value))) return false;
  return rule.in?.includes(value) !== false && rule.notIn?.includes(value) !== true;
}
