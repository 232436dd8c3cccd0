package command

import "log/slog"

// LogLevel is the level that a flag names, whose enum must be debug, info, warn and
// error or some of them.
func LogLevel(name string) slog.Level {
	var level slog.Level
	if err := level.UnmarshalText([]byte(name)); err != nil {
		panic("command: " + err.Error()) // the flag's enum and slog disagree
	}
	return level
}
