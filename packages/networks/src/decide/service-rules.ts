import type { Service } from "@fairlead/core";
import type { RuledOwner } from "@fairlead/endpoint-filter";

/** Says of services who owns them, by an annotation of theirs or a label of their namespace. */
export type ServiceRule = ({ readonly annotation: string } | { readonly namespaceLabel: string }) & {
  /** The value must be one of these. */
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
    /** Names of labels of namespaces. */
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

function valueFor(rule: ServiceRule, service: Service, labelsOf: NamespaceLabels): string | undefined {
  const [from, name] =
    "annotation" in rule ? [service.annotations, rule.annotation] : [labelsOf(service.namespace), rule.namespaceLabel];
  return from !== undefined && Object.hasOwn(from, name) ? from[name] : undefined;
}

function meets(rule: ServiceRule, value: string, defaultVPCs: ReadonlySet<string>): boolean {
  if (rule.notInDefaultVPC === true && (defaultVPCs.size === 0 || defaultVPCs.has(value))) return false;
  return rule.in?.includes(value) !== false && rule.notIn?.includes(value) !== true;
}
