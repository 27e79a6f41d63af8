import { type DeclarationReflection, type ProjectReflection, type Reflection, ReflectionKind } from "typedoc";

const KINDS =
  ReflectionKind.Variable |
  ReflectionKind.Function |
  ReflectionKind.Class |
  ReflectionKind.Interface |
  ReflectionKind.Property |
  ReflectionKind.Method |
  ReflectionKind.Accessor |
  ReflectionKind.TypeAlias;

/**
 * Exports and members without a comment, a line each. Two kinds of members need none, which TypeDoc's own check asks
 * for: those of a type that is written inline, which the comment of the whole explains, and those of a single literal
 * type, such as `kind: "full"`.
 *
 * @param packages names of those that are looked at
 */
export function uncommented(project: ProjectReflection, packages: ReadonlySet<string>): readonly string[] {
  return project.getReflectionsByKind(KINDS).flatMap((member) => {
    const { packageName = "", packagePath = "" } = project.getSymbolIdFromReflection(member) ?? {};
    if (!packages.has(packageName) || isInline(member) || !member.isDeclaration()) return [];
    if (member.type?.type === "literal" || isCommented(member)) return [];
    return [`${member.getFriendlyFullName()}, defined in ${packageName}/${packagePath}, has no comment`];
  });
}

const isInline = ({ parent }: Reflection): boolean =>
  parent !== undefined && (parent.name === "__type" || parent.kindOf(ReflectionKind.Parameter) || isInline(parent));

/** The comment of a function is that of one of its signatures. */
function isCommented(member: DeclarationReflection): boolean {
  const { type } = member;
  const inner = type?.type === "reflection" ? type.declaration.getAllSignatures() : [];
  return [member, ...member.getAllSignatures(), ...inner].some((one) => one.hasComment());
}
