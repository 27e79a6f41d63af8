export {
  FakeConntrack,
  FakeDevices,
  FakeModules,
  FakeNfacct,
  type FakeNfacctOptions,
  FakeNodeAddresses,
  FakeRouting,
  FakeSysctl,
  FakeTracking,
} from "./clients.ts";
export { FakeIptables, type FakeIptablesOptions } from "./fake-iptables.ts";
export { FakeRunner, type Program, type ProgramAnswer } from "./fake-runner.ts";
export { type CallListener, type FakeCall, type Fault, Faults } from "./faults.ts";
export { FakeHcn, type FakeHcnOptions, type HcnCall } from "./hcn.ts";
export { FakeIpset, type FakeIpsetOptions } from "./ipset.ts";
export { FakeIpvsadm, type FakeIpvsadmOptions, FakeLinks } from "./ipvs.ts";
export { FakeNftables, type FakeNftablesOptions } from "./nftables/fake-nftables.ts";
