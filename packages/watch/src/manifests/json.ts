import { JSONParser } from "@streamparser/json";
import { breather } from "../breathe.ts";
import { errorText } from "../raw.ts";
import { ManifestSyntaxError } from "./syntax-error.ts";

const slice = 64 * 1024;

/**
 * JSON.parse that lets others have their turn: 10 MB take a third of a second, 64 KiB at a time.
 *
 * @throws ManifestSyntaxError
 */
export async function parseJson(content: Uint8Array): Promise<unknown> {
  const parser = new JSONParser({ paths: ["$"] });
  const breathe = breather();
  let document: unknown;
  parser.onValue = ({ value }) => {
    document = value;
  };
  try {
    for (let at = 0; at < content.length; at += slice) {
      parser.write(content.subarray(at, at + slice));
      await breathe();
    }
  } catch (error) {
    throw located(content, errorText(error));
  }
  if (!parser.isEnded) throw located(content, "the text ends too early");
  return document;
}

/** The stream parser doesn't say where it stopped; JSON.parse does, all at once, which an error may cost. */
function located(content: Uint8Array, otherwise: string): ManifestSyntaxError {
  try {
    JSON.parse(Buffer.from(content).toString("utf8"));
    return new ManifestSyntaxError(otherwise);
  } catch (error) {
    const text = errorText(error);
    const [, line, column] = /\(line (\d+) column (\d+)\)/.exec(text) ?? [];
    const message = text.replace(/ in JSON at position .*$/s, "");
    return line === undefined
      ? new ManifestSyntaxError(message)
      : new ManifestSyntaxError(message, Number(line), Number(column));
  }
}
