import { jsonObjects } from "./json.ts";
import { ManifestSyntaxError, TooMuchManifestError } from "./syntax-error.ts";
import { yamlObjects } from "./yaml.ts";

/**
 * The objects of a manifest file: single ones, several documents, Lists and bare arrays, in their order.
 *
 * Text that begins like JSON is read as JSON, which is some hundred times faster than YAML; when it turns out to be
 * YAML in flow style after all, it is read as that.
 *
 * @throws ManifestSyntaxError
 */
export async function* parseManifest(file: string, content: Uint8Array): AsyncGenerator<unknown> {
  if (file.endsWith(".json")) yield* jsonObjects(content);
  else if (beginsLikeJson(content)) yield* jsonOrYaml(content);
  else yield* yamlObjects(content);
}

async function* jsonOrYaml(content: Uint8Array): AsyncGenerator<unknown> {
  try {
    // All of it first, as what has been given can't be taken back.
    for await (const _ of jsonObjects(content));
  } catch (error) {
    if (!(error instanceof ManifestSyntaxError) || error instanceof TooMuchManifestError) throw error;
    yield* yamlObjects(content);
    return;
  }
  yield* jsonObjects(content);
}

function beginsLikeJson(content: Uint8Array): boolean {
  const first = content.find((byte) => byte > 0x20);
  return first === 0x7b || first === 0x5b;
}
