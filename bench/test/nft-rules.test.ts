import { readTables } from "@fairlead/netfilter/nft";
import { expect, test } from "vitest";
import { frontendsOf } from "../src/measure/rules.ts";

/** As Fairlead writes it: endpoints are elements. */
function ours(...endpoints: readonly string[]): string {
  const slots = endpoints.map((endpoint, slot) => `10.96.0.10 . tcp . 80 . ${slot} : ${endpoint} . 8080`);
  return `table ip kube-proxy {
    map endpoints-4 {
      typeof ip daddr . meta l4proto . th dport . numgen random mod 4 : ip daddr . tcp dport
      elements = { ${[...slots, "10.96.0.11 . tcp . 80 . 0 : 10.9.9.9 . 80"].join(",\n")} }
    }
    map service-ips {
      type ipv4_addr . inet_proto . inet_service : verdict
      elements = { 10.96.0.10 . tcp . 80 comment "default/web" : goto endpoints-4 }
    }
    map no-endpoint-services {
      type ipv4_addr . inet_proto . inet_service : verdict
      elements = { 10.96.0.12 . tcp . 80 : drop }
    }
    chain endpoints-4 {
      dnat ip to ip daddr . meta l4proto . th dport . numgen random mod 4 map @endpoints-4
    }
  }`;
}

/** As kube-proxy does: a chain for each. */
function theirs(...endpoints: readonly string[]): string {
  const led = endpoints.map((endpoint, at) => `${at} : goto endpoint-${endpoint}`);
  const chains = endpoints.map(
    (endpoint) => `chain endpoint-${endpoint} { meta l4proto tcp dnat to ${endpoint}:8080 }`,
  );
  return `table ip kube-proxy {
    map service-ips {
      type ipv4_addr . inet_proto . inet_service : verdict
      elements = { 10.96.0.10 . tcp . 80 : goto service-web }
    }
    map no-endpoint-services {
      type ipv4_addr . inet_proto . inet_service : verdict
      elements = { 10.96.0.12 . tcp . 80 : drop }
    }
    chain service-web { numgen random mod ${endpoints.length} vmap { ${led.join(", ")} } }
    ${chains.join("\n")}
  }`;
}

function frontends(listing: string): ReadonlyMap<string, string> {
  return new Map(readTables(listing).flatMap((table) => [...frontendsOf(table)]));
}

const [A, B, C] = ["10.1.0.1", "10.1.0.2", "10.1.0.3"];

test("tables of both proxies that lead to the same endpoints are alike, in whatever slots", () => {
  expect(frontends(ours(A, B)).size).toBe(2);
  expect(frontends(ours(A, B))).toEqual(frontends(theirs(B, A)));
});

test("an endpoint more, less or another makes a difference", () => {
  for (const other of [theirs(A, B, C), theirs(A), theirs(A, C), ours(A, C), ours(A)]) {
    expect(frontends(ours(A, B))).not.toEqual(frontends(other));
  }
});
