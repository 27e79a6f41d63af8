interface Props {
  readonly label: string;
  /** What the files are, in a word or two. */
  readonly name: string;
  readonly text: string;
  readonly onText: (text: string) => void;
}

/** YAML or JSON that is pasted, or read from files of the user's machine. */
export function TextOrFiles({ label, name, text, onText }: Props) {
  const load = async (input: HTMLInputElement) => {
    const texts = await Promise.all(Array.from(input.files ?? [], (file) => file.text()));
    onText([...(text.trim() === "" ? [] : [text]), ...texts].join("\n---\n"));
    // The same files can be chosen again.
    input.value = "";
  };
  return (
    <div class="text-or-files">
      <label>
        {label} (YAML or JSON)
        <textarea value={text} onInput={(event) => onText(event.currentTarget.value)} spellcheck={false} />
      </label>
      <label class="inline">
        Add {name} from files
        <input type="file" multiple accept=".yaml,.yml,.json" onChange={(event) => void load(event.currentTarget)} />
      </label>
    </div>
  );
}
