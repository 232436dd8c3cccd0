package compute

import "time"

// Add appends texts to the body.
func (a *Answer) Add(text ...[]byte) error {
	n := 0
	for _, t := range text {
		n += len(t)
	}
	if err := a.Grow(n); err != nil {
		return err
	}
	for _, t := range text {
		a.Body = append(a.Body, t...)
	}
	return nil
}

// AddText appends a text to the body.
func (a *Answer) AddText(text string) error {
	if err := a.Grow(len(text)); err != nil {
		return err
	}
	a.Body = append(a.Body, text...)
	return nil
}

// Write appends to the body, for encoders.
func (a *Answer) Write(text []byte) (int, error) {
	if err := a.Add(text); err != nil {
		return 0, err
	}
	return len(text), nil
}

// EntrySpare is more than an entry has beside its texts, in bytes.
const EntrySpare = 512

// AddEntry appends an entry to a list in the body. textBytes is the length of its texts.
func (a *Answer) AddEntry(first bool, textBytes int, render func(b []byte) []byte) error {
	if err := a.Grow(textBytes + EntrySpare); err != nil {
		return err
	}
	if !first {
		a.Body = append(a.Body, ',')
	}
	a.Body = render(a.Body)
	return nil
}

// AppendMillis appends a time in milliseconds since the Unix epoch, with its quotation marks.
func AppendMillis(b []byte, ms int64) []byte {
	return time.UnixMilli(ms).UTC().AppendFormat(b, `"2006-01-02T15:04:05.000Z"`)
}

// NullIfEmpty returns null for an empty JSON string.
func NullIfEmpty(text []byte) []byte {
	if string(text) == `""` {
		return []byte("null")
	}
	return text
}
