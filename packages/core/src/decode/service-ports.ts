import { fieldsOf, isAbsent, isPort, itemsOf, protocolOf, type RawObject } from "@fairlead/base";
import type { Protocol, ServicePortSpec } from "../objects.ts";
import type { ProblemList } from "../problem.ts";
import type { Intern } from "./intern.ts";
import { isLabel, LABEL_FORM } from "./names.ts";

const PORT_FORM = "must be a number from 1 to 65535";

/** The usable ports of a Service. A bad port is reported and left out; a bad node port costs only the node port. */
export function readServicePorts(spec: RawObject, intern: Intern, problems: ProblemList): readonly ServicePortSpec[] {
  const items = itemsOf(spec["ports"]);
  if (items.length === 0) problems.add("spec.ports", spec["ports"], "must have at least one port");
  const ports = new Map<string, ServicePortSpec>();
  items.forEach((item, i) => {
    const field = `spec.ports[${i}]`;
    const port = readServicePort(field, fieldsOf(item), intern, problems);
    if (port === undefined) return;
    const key = `${port.name}/${port.protocol}`;
    if (ports.has(key)) problems.add(`${field}.name`, port.name, `is the second ${port.protocol} port of this name`);
    else ports.set(key, port);
  });
  return [...ports.values()];
}

function readServicePort(
  field: string,
  item: RawObject,
  intern: Intern,
  problems: ProblemList,
): ServicePortSpec | undefined {
  const name = readPortName(`${field}.name`, item["name"], problems);
  const protocol = readProtocol(`${field}.protocol`, item["protocol"], problems);
  const port = readPort(`${field}.port`, item["port"], problems);
  if (name === undefined || protocol === undefined || port === undefined) return undefined;
  const nodePort = readNodePort(`${field}.nodePort`, item["nodePort"], problems);
  const base = { name: intern(name), protocol, port };
  return nodePort === undefined ? base : { ...base, nodePort };
}

/** The name of a Service's port, "" where it has none; undefined: a bad one, reported. */
function readPortName(field: string, value: unknown, problems: ProblemList): string | undefined {
  if (isAbsent(value) || value === "") return "";
  if (typeof value === "string" && isLabel(value)) return value;
  problems.add(field, value, LABEL_FORM);
  return undefined;
}

/** Absent means TCP, as in the API. */
export function readProtocol(field: string, value: unknown, problems: ProblemList): Protocol | undefined {
  const known = protocolOf(value);
  if (known === undefined) problems.add(field, value, "must be TCP, UDP or SCTP");
  return known;
}

function readPort(field: string, value: unknown, problems: ProblemList): number | undefined {
  if (isPort(value)) return value;
  problems.add(field, value, PORT_FORM);
  return undefined;
}

/** 0 is how the API says none. */
function readNodePort(field: string, value: unknown, problems: ProblemList): number | undefined {
  if (isAbsent(value) || value === 0) return undefined;
  return readPort(field, value, problems);
}
