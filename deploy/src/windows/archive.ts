/** The archive for Windows nodes: node.exe, the agent, and a file for the service wrapper WinSW. */

import { zipSync } from "fflate";
import type { Bundle } from "../sbom/bundle.ts";

export const ARCHIVE = "fairlead-windows-amd64.zip";

/**
 * WinSW starts the agent as a service and keeps its log. When the service is stopped it presses Ctrl-C for the agent.
 */
const SERVICE = `<service>
  <id>fairlead-proxy</id>
  <name>Fairlead</name>
  <description>Kubernetes service proxy</description>
  <executable>%BASE%\\node.exe</executable>
  <arguments>"%BASE%\\main.js" --config "%ProgramData%\\fairlead\\config.conf"</arguments>
  <logpath>%ProgramData%\\fairlead\\logs</logpath>
  <log mode="roll-by-size"><sizeThreshold>10240</sizeThreshold><keepFiles>4</keepFiles></log>
  <stoptimeout>10 sec</stoptimeout>
  <onfailure action="restart" delay="1 sec"/>
</service>
`;

const README = `Fairlead for Windows nodes: kube-proxy's kernelspace mode. It has never run on Windows.

Unpack to C:\\fairlead. As a program:
  C:\\fairlead\\node.exe C:\\fairlead\\main.js --config C:\\ProgramData\\fairlead\\config.conf
As a service: put WinSW alongside it as fairlead-proxy.exe, then fairlead-proxy.exe install
As a DaemonSet: deploy/overlays/windows starts these files.
`;

interface ArchiveFiles {
  /** The agent's for Windows. */
  readonly bundle: Pick<Bundle, "files" | "binaries">;
  readonly node: Buffer;
  readonly license: Buffer;
  /** Licenses of the packages in the bundle. */
  readonly notices: string;
}

/** Of zip archives' calendar, in local time as they have it. */
const FIRST_DAY = new Date(1980, 0, 1);

/** The same files are the same bytes, whenever it is made. */
export function windowsArchive({ bundle, node, license, notices }: ArchiveFiles): Buffer {
  const files = {
    "LICENSE.txt": license,
    "THIRD-PARTY-LICENSES.txt": Buffer.from(notices),
    "README.txt": Buffer.from(README.replaceAll("\n", "\r\n")),
    "fairlead-proxy.xml": Buffer.from(SERVICE),
    ...Object.fromEntries(Array.from(bundle.files, ([name, text]) => [name, Buffer.from(text)])),
    ...Object.fromEntries(bundle.binaries),
    "node.exe": node,
  };
  return Buffer.from(zipSync(files, { level: 9, mtime: FIRST_DAY }));
}
