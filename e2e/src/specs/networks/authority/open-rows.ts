import { subnet } from "../learning.ts";
import { around, EDITOR, overAPI, PORTS, service, TENANT, typo } from "./aims.ts";
import type { NetworkAttack } from "./attack.ts";
import type { Bystanders } from "./bystanders.ts";
import { consentFromPage } from "./consent-page.ts";

const DUMMIES = 12;

const half = ({ pool }: Bystanders) => around(pool.slice(0, pool.indexOf("/")), 17);

/** Where no source has `within`. */
export const openRows: readonly NetworkAttack[] = [
  {
    name: "a Subnet inside our pool by mistake, made and deleted",
    outcome: "held",
    who: EDITOR,
    steps: (at) => [{ create: subnet("typo", typo(at)) }],
    reported: (at) => [held(typo(at), "Subnet/typo", at)],
    logged: (at) => `fairlead ownership --accept ${typo(at)}`,
  },
  {
    name: "a Subnet over the API server",
    outcome: "ignored",
    who: EDITOR,
    steps: (at) => [{ create: subnet("over-api", overAPI(at)) }],
    reported: (at) => [{ cidr: overAPI(at), stage: "effective", object: "Subnet/over-api" }],
  },
  {
    name: "a Subnet that is half of our pool, and Services that make it a small part",
    outcome: "held",
    who: TENANT,
    before: (at) => [subnet("half", half(at))],
    steps: ({ tenant }) =>
      Array.from({ length: DUMMIES }, (_, number) => ({
        create: service(tenant, `dummy-${number}`, { ports: PORTS }),
      })),
    reported: (at) => [held(half(at), "Subnet/half", at)],
  },
  {
    name: "consent from a web page",
    outcome: "refused",
    who: { name: "a page in a browser on the node" },
    before: (at) => [subnet("typo", typo(at))],
    steps: () => [],
    reported: (at) => [held(typo(at), "Subnet/typo", at)],
    meanwhile: (at) => consentFromPage(at, typo(at)),
  },
];

function held(cidr: string, object: string, { pool }: Bystanders) {
  return { cidr, object, why: `lies in ${pool} (IPPool/default-ipv4), which is ours`, stage: "held" } as const;
}
