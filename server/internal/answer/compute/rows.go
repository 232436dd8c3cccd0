package compute

// Rows are copies of rows for a page, whose memory counts as that of the answer.
type Rows struct {
	text  []byte
	spans []span
	ended bool // another row would be too much for a page
}

type span struct{ from, to int }

// Len is the number of rows.
func (r *Rows) Len() int { return len(r.spans) }

// Bytes is the length of all rows.
func (r *Rows) Bytes() int { return len(r.text) }

// At is row i.
func (r *Rows) At(i int) []byte { return r.text[r.spans[i].from:r.spans[i].to] }

// IsFull reports whether a page with that limit takes no more rows.
func (r *Rows) IsFull(limit int) bool { return r.ended || r.Len() == limit }

// Truncate leaves out all rows but the first n.
func (r *Rows) Truncate(n int) { r.spans = r.spans[:n] }

// Copy appends a copy of a row, unless the page has to end.
func (r *Rows) Copy(a *Answer, row []byte) error {
	if r.ended = r.ended || r.Len() > 0 && len(r.text)+len(row) > MostPageBytes; r.ended {
		return nil
	}
	if more := len(r.text) + len(row) - cap(r.text); more > 0 {
		more = max(more, cap(r.text), firstBytes)
		if err := a.Take(more); err != nil {
			return err
		}
		r.text = append(make([]byte, 0, cap(r.text)+more), r.text...)
	}
	r.spans = append(r.spans, span{len(r.text), len(r.text) + len(row)})
	r.text = append(r.text, row...)
	return nil
}

// AddRows appends a list of entries between two texts: render appends the entry of row i, which parse has read.
func AddRows[R any](
	a *Answer, begin string, page *Rows, parse func(row []byte) (R, error), render func(b []byte, i int, r R) []byte, end string,
) error {
	if err := a.AddText(begin); err != nil {
		return err
	}
	for i := range page.Len() {
		r, err := parse(page.At(i))
		if err != nil {
			return err
		}
		if err := a.AddEntry(i == 0, len(page.At(i)), func(b []byte) []byte { return render(b, i, r) }); err != nil {
			return err
		}
	}
	return a.AddText(end)
}
