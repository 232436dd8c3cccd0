// What no reader needs at once: the settings, the seal, and the view that it leads to. They load together, after the first
// view.

import { settingTexts } from '../latertexts';
import { choose, themes, useSettings } from '../settings';
import type { Text } from '../text';

export { ProofView } from '../views/proof';
export { Seal } from './seal';

function Choice({ name, label, about }: { name: 'pictures' | 'others' | 'shortcuts'; label: Text; about: Text }) {
  const settings = useSettings();
  return (
    <div>
      <label class="field">
        <input
          type="checkbox"
          checked={settings[name] === true}
          aria-describedby={`about-${name}`}
          onChange={(event) => choose({ [name]: event.currentTarget.checked })}
        />
        {label}
      </label>
      <p id={`about-${name}`} class="quiet small">
        {about}
      </p>
    </div>
  );
}

export function Choices({ anyPictures, readerDecides }: { anyPictures: boolean; readerDecides: boolean }) {
  const settings = useSettings();
  return (
    <div class="stack">
      <fieldset>
        <legend>{settingTexts.theme}</legend>
        <div class="choices">
          {themes.map((theme) => (
            <label key={theme}>
              <input
                type="radio"
                name="theme"
                checked={settings.theme === theme}
                onChange={() => choose({ theme })}
              />
              {settingTexts.themes[theme]}
            </label>
          ))}
        </div>
      </fieldset>
      {anyPictures && <Choice name="pictures" label={settingTexts.pictures} about={settingTexts.aboutPictures} />}
      {readerDecides && <Choice name="others" label={settingTexts.others} about={settingTexts.aboutOthers} />}
      <Choice name="shortcuts" label={settingTexts.shortcuts} about={settingTexts.aboutShortcuts} />
    </div>
  );
}
