import { expectReadmeExample } from "@fairlead/tooling/readme";
import { test } from "vitest";

test("README example", () => expectReadmeExample(import.meta.dirname));
