import type { NpmPackage } from "./bundle.ts";
import type { DebianPackage } from "./debian.ts";

export interface ImageContents {
  /** `ghcr.io/fairlead-dev/fairlead:0.1.0` */
  readonly image: string;
  /** `sha256:…` of the platform's manifest. */
  readonly digest: string;
  readonly arch: string;
  /** Seconds since the epoch. */
  readonly epoch: number;
  readonly agent: NpmPackage;
  readonly nodeVersion: string;
  readonly npm: readonly NpmPackage[];
  readonly debian: readonly DebianPackage[];
}

/** An image's contents as SPDX 2.3 (https://spdx.github.io/spdx-spec/v2.3/), JSON form. */
export function toSpdx(contents: ImageContents) {
  const image = imageElement(contents);
  const parts = [
    npmElement(contents.agent),
    element("node", contents.nodeVersion, "MIT", `pkg:generic/node@${contents.nodeVersion}`),
    ...contents.npm.map(npmElement),
    ...contents.debian.map(debianElement),
  ];
  return {
    spdxVersion: "SPDX-2.3",
    dataLicense: "CC0-1.0",
    SPDXID: "SPDXRef-DOCUMENT",
    name: contents.image,
    documentNamespace: `https://fairlead.dev/spdx/${contents.digest.replace(":", "-")}`,
    creationInfo: {
      created: new Date(contents.epoch * 1000).toISOString().replace(/\.\d+Z$/, "Z"),
      creators: ["Organization: Fairlead", `Tool: fairlead-image-${contents.agent.version}`],
    },
    packages: [image, ...parts],
    relationships: [
      relation("SPDXRef-DOCUMENT", "DESCRIBES", image.SPDXID),
      ...parts.map(({ SPDXID }) => relation(image.SPDXID, "CONTAINS", SPDXID)),
    ],
  };
}

function element(name: string, version: string, license: string, purl: string) {
  return {
    SPDXID: `SPDXRef-${`${name}-${version}`.replace(/[^A-Za-z0-9.-]/g, "-")}`,
    name,
    versionInfo: version,
    downloadLocation: "NOASSERTION",
    filesAnalyzed: false,
    licenseConcluded: "NOASSERTION",
    licenseDeclared: license,
    copyrightText: "NOASSERTION",
    externalRefs: [{ referenceCategory: "PACKAGE-MANAGER", referenceType: "purl", referenceLocator: purl }],
  };
}

function imageElement({ image, digest, arch, agent }: ImageContents) {
  const [repository = image, name = repository.slice(repository.lastIndexOf("/") + 1)] = [
    image.slice(0, image.lastIndexOf(":")),
  ];
  const purl = `pkg:oci/${name}@${encodeURIComponent(digest)}?arch=${arch}&repository_url=${encodeURIComponent(repository)}`;
  return { ...element(image, agent.version, agent.license, purl), primaryPackagePurpose: "CONTAINER" };
}

function npmElement({ name, version, license }: NpmPackage) {
  return element(name, version, license, `pkg:npm/${name.replace("@", "%40")}@${version}`);
}

/** Debian's licenses are in the image, in each package's copyright file; not all of them are SPDX expressions. */
function debianElement({ name, version, architecture, source, maintainer }: DebianPackage) {
  const purl = `pkg:deb/debian/${encodeURIComponent(name)}@${encodeURIComponent(version)}?arch=${architecture}`;
  return {
    ...element(name, version, "NOASSERTION", purl),
    sourceInfo: `built from Debian source package ${source}`,
    supplier: `Organization: ${maintainer.replace(/\s*<(.*)>/, " ($1)")}`,
  };
}

function relation(from: string, relationshipType: string, to: string) {
  return { spdxElementId: from, relationshipType, relatedSpdxElement: to };
}
