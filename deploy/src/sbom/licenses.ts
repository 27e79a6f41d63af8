import { markdownTable } from "@fairlead/tooling/markdown-table";
import type { NpmPackage } from "./bundle.ts";

/** Licenses by their SPDX names that may be bundled into an Apache-2.0 program. */
const COMPATIBLE = new Set([
  "Apache-2.0",
  "MIT",
  "ISC",
  "BSD-2-Clause",
  "BSD-3-Clause",
  "0BSD",
  "BlueOak-1.0.0",
  "Unlicense",
]);

/** Packages whose license a maintainer has to check before they are bundled. */
export function incompatible(packages: readonly NpmPackage[]): NpmPackage[] {
  return packages.filter(({ license }) => !namesOf(license).every((name) => COMPATIBLE.has(name)));
}

/** All that hold at once. Of a choice (`OR`) a maintainer has to take one. */
function namesOf(expression: string): readonly string[] {
  return expression.replace(/^\((.*)\)$/, "$1").split(" AND ");
}

const HEAD = `# Licenses

Fairlead is licensed under the [Apache License 2.0](../LICENSE). \`pnpm run licenses\` writes this list: the packages of others that the
bundles of the agent and of the command line tool contain. Their licenses stand word for word in the image
(\`/usr/local/share/doc/fairlead/THIRD-PARTY-LICENSES.txt\`).

`;

const TAIL = `
The image also contains [Node.js](https://github.com/nodejs/node/blob/main/LICENSE) and packages of Debian, named in
[packages.txt](../deploy/image/packages.txt), with what they depend on. Debian's licenses are in the image, in
\`/usr/share/doc/*/copyright\`; the SBOM published with each image lists all versions.
`;

/** The list as Markdown, without versions: it changes when a package comes or goes, or its license does. */
export function licenseList(packages: readonly NpmPackage[]): string {
  const rows = new Map(packages.map(({ name, license }) => [name, license]));
  return `${HEAD}${markdownTable(["package", "license"], [...rows]).join("\n")}\n${TAIL}`;
}
