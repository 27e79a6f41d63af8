/**
 * The built agent under Wine, through the first steps of a case: prints what HCN has after each and how many writes led
 * there, and its exit code.
 */

import { WINDOWS_CASES } from "@fairlead/testkit/windows";
import { openGround } from "./ground.ts";
import { PlayedNode } from "./play.ts";

const [, , node = "", name = "", count = "0"] = process.argv;
const of = WINDOWS_CASES.find((one) => one.name === name);
if (of === undefined) throw new Error(`there is no case ${name}`);
{
  await using ground = await openGround(node);
  const played = new PlayedNode(of, ground.stoppable, ground.wine, ground.folder);
  const stop = async () => {
    await ground.stoppable.stop(ground);
    console.log(JSON.stringify(await played.ended()));
  };
  for await (const step of played.play(of.steps.slice(0, Number(count)), stop)) {
    const { writes } = await played.state();
    console.log(JSON.stringify({ ...step, writes }));
  }
}
process.exit(0);
