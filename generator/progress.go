package generator

import "github.com/followpress/followpress/generator/internal/load"

// Progress reports how far a run has come.
type Progress = load.Progress

type noProgress struct{}

func (noProgress) Stage(string, int64)   {}
func (noProgress) AddBytes(int64, int64) {}
