export { FakeNodeAddresses } from "./fake-addresses.ts";
export { FakeConntrack } from "./fake-conntrack.ts";
export { FakeModules } from "./fake-modules.ts";
export { FakeNfacct, type FakeNfacctOptions } from "./fake-nfacct.ts";
export { FakeRunner, type Program, type ProgramAnswer } from "./fake-runner.ts";
export { FakeSysctl } from "./fake-sysctl.ts";
export { type CallListener, type FakeCall, type Fault, Faults } from "./faults.ts";
export { FakeIptables, type FakeIptablesOptions } from "./iptables/fake-iptables.ts";
export { settled, VirtualTimers } from "./virtual-timers.ts";
