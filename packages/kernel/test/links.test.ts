import { describe, expect, test } from "vitest";
import { FakeRunner } from "../src/fake/index.ts";
import { createLinks } from "../src/index.ts";
import { result, scripted } from "./netlink/scripted.ts";

describe("the client of devices", () => {
  const noTool = new FakeRunner({});

  test("asks the kernel for a dummy device of that name, which must be new", async () => {
    const kernel = scripted(result(0));
    await createLinks(noTool, { open: kernel.open }).change([{ kind: "add-device", device: "kube-ipvs0" }]);
    const [request] = kernel.sent;
    expect([request?.readUInt16LE(4), request?.readUInt16LE(6)]).toEqual([16, 0x605]);
    expect(request?.toString("latin1")).toMatch(/kube-ipvs0\0[\s\S]*dummy\0/);
    expect(kernel.closed()).toBe(1);
  });

  test("runs the tool where netlink cannot be had", async () => {
    const written: string[] = [];
    const tool = new FakeRunner({
      ip: (args, input) => {
        written.push(`${args.join(" ")}: ${input}`);
        return "";
      },
    });
    const open = () => Promise.reject(new Error("no binary"));
    await createLinks(tool, { open }).change([{ kind: "delete-device", device: "kube-ipvs0" }]);
    expect(written).toEqual(["-batch -: link del dev kube-ipvs0\n"]);
  });
});
