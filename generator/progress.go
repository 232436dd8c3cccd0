package generator

// Progress reports how far a run has come. Its methods are called from many goroutines.
type Progress interface {
	// Stage begins a part of the run. total is the sum of n over all calls of AddBytes in this
	// stage, or 0 if unknown.
	Stage(name string, total int64)
	// AddBytes reports n more finished items and their bytes: stored bytes of files read, or bytes
	// of objects rendered.
	AddBytes(n, bytes int64)
}

type noProgress struct{}

func (noProgress) Stage(string, int64)   {}
func (noProgress) AddBytes(int64, int64) {}
