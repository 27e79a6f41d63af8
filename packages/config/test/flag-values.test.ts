import { expect, test } from "vitest";
import { configOf, parse } from "./parse.ts";

test("every flag has its value or its default, as kube-proxy shows them", () => {
  const given = ["--cluster-cidr=10.144.0.0/16", "--nodeport-addresses=primary,localhost", "--masquerade-all", "-v=2"];
  const { flags } = configOf(parse([...given, "--master=https://me:secret@192.0.2.1:6443"]));
  expect(flags).toMatchObject({
    "cluster-cidr": "10.144.0.0/16",
    "nodeport-addresses": "[primary,localhost]",
    "masquerade-all": "true",
    v: "2",
    master: "https://192.0.2.1:6443",
    "healthz-bind-address": "0.0.0.0:10256",
    "bind-address-hard-fail": "false",
    "iptables-sync-period": "30s",
    "exclude-cluster-cidr": "[]",
  });
  expect(flags).not.toHaveProperty("windows-service");
});
