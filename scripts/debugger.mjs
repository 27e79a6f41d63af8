// The agent refuses to begin with --inspect, which on a node would let any local user run code in it: here it is opened
// by hand, for its developer.
import { open } from "node:inspector";

open(9229, "127.0.0.1");
