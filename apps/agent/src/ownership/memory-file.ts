import { mkdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import type { IPFamily, Ownership, ServiceKey } from "@fairlead/core";

/** Last decided ownership by service and family, as the file has it. */
export type OwnershipEntries = ReadonlyMap<ServiceKey, Readonly<Partial<Record<IPFamily, Ownership>>>>;

const version = 1;
const families: readonly IPFamily[] = ["IPv4", "IPv6"];
const ownerships: ReadonlySet<unknown> = new Set<Ownership>(["ours", "foreign", "mixed"]);

/**
 * Reads the memory back.
 *
 * @throws Error when the file is there and is not one of these; a missing file is an empty memory
 */
export async function readMemoryFile(path: string): Promise<OwnershipEntries> {
  const text = await readFile(path, "utf8").catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return undefined;
    throw error;
  });
  return text === undefined ? new Map() : parseMemory(text);
}

/** Writes beside the file and renames, so that a reader sees the old memory or the new one, never a part. */
export async function writeMemoryFile(path: string, entries: OwnershipEntries): Promise<void> {
  await mkdir(dirname(path), { recursive: true });
  const beside = `${path}.${process.pid}.tmp`;
  try {
    await writeFile(beside, renderMemory(entries), { mode: 0o600 });
    await rename(beside, path);
  } catch (error) {
    await rm(beside, { force: true });
    throw error;
  }
}

/** Services in the order of their names, so that equal memories are equal files. */
export function renderMemory(entries: OwnershipEntries): string {
  const services = Object.fromEntries([...entries].sort(([a], [b]) => (a < b ? -1 : 1)));
  return `${JSON.stringify({ version, services }, undefined, 1)}\n`;
}

/** @throws Error saying what is wrong with the text */
export function parseMemory(text: string): OwnershipEntries {
  const root = asRecord(JSON.parse(text), "the file");
  if (root["version"] !== version) throw new Error(`version ${JSON.stringify(root["version"])} instead of ${version}`);
  const entries = new Map<ServiceKey, Partial<Record<IPFamily, Ownership>>>();
  for (const [service, value] of Object.entries(asRecord(root["services"], "services"))) {
    if (!isServiceKey(service)) throw new Error(`${JSON.stringify(service)} is not namespace/name`);
    entries.set(service, parseFamilies(asRecord(value, service), service));
  }
  return entries;
}

function parseFamilies(
  record: Readonly<Record<string, unknown>>,
  service: string,
): Partial<Record<IPFamily, Ownership>> {
  const parsed: Partial<Record<IPFamily, Ownership>> = {};
  for (const family of families) {
    const value = record[family];
    if (value === undefined) continue;
    if (!isOwnership(value)) throw new Error(`${service} has ${JSON.stringify(value)} as its ownership`);
    parsed[family] = value;
  }
  return parsed;
}

function asRecord(value: unknown, what: string): Readonly<Record<string, unknown>> {
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw new Error(`${what} is not an object`);
  return Object.fromEntries(Object.entries(value));
}

function isServiceKey(text: string): text is ServiceKey {
  return /^[^/]+\/[^/]+$/.test(text);
}

function isOwnership(value: unknown): value is Ownership {
  return ownerships.has(value);
}
