// What no reader needs at once: the settings, the seal and the view that it leads to, what accounts are to the reader, and
// whether the site has newer data. They load together, after the first view.

import { forgetViewed } from '../data/mine';
import { settingTexts } from '../texts/later';
import { mineTexts } from '../texts/mine';
import { choose, themes, useSettings } from '../settings';
import type { Text } from '../text';
import { Accounts } from './mine';

export { ProofView } from '../views/proof';
export { Me } from './mine';
export { Newer } from './newer';
export { Seal } from './seal';

function Choice({ name, label, about, off }: { name: 'pictures' | 'others' | 'shortcuts' | 'viewed'; label: Text; about: Text; off?: () => void }) {
  const settings = useSettings();
  return (
    <div>
      <label class="field">
        <input
          type="checkbox"
          checked={settings[name] === true}
          aria-describedby={`about-${name}`}
          onChange={(event) => {
            choose({ [name]: event.currentTarget.checked });
            if (!event.currentTarget.checked) {
              off?.();
            }
          }}
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
      <Accounts />
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
      <Choice name="viewed" label={mineTexts.viewed} about={mineTexts.aboutViewed} off={forgetViewed} />
      <Choice name="shortcuts" label={settingTexts.shortcuts} about={settingTexts.aboutShortcuts} />
    </div>
  );
}
