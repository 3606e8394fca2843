package main

import (
	"context"
	"log/slog"
	"maps"
	"slices"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// zapLog is a log of certmagic's kind that writes to ours. It tells each step, which
// is for who looks for a fault. What it says of visitors is left out.
type zapLog struct{ log *slog.Logger }

var _ zapcore.Core = zapLog{}

func newZap(log *slog.Logger) *zap.Logger { return zap.New(zapLog{log}) }

// visitors are fields with the address of a visitor, or with what else they send.
var visitors = []string{"remote", "remote_ip", "remote_port", "remote_addr", "user_agent", "uri"}

func level(l zapcore.Level) slog.Level {
	switch {
	case l < zapcore.WarnLevel:
		return slog.LevelDebug
	case l < zapcore.ErrorLevel:
		return slog.LevelWarn
	}
	return slog.LevelError
}

// Enabled implements [zapcore.Core].
func (z zapLog) Enabled(l zapcore.Level) bool {
	return z.log.Enabled(context.Background(), level(l))
}

// With implements [zapcore.Core].
func (z zapLog) With(fields []zapcore.Field) zapcore.Core {
	return zapLog{slog.New(z.log.Handler().WithAttrs(attributes(fields)))}
}

// Check implements [zapcore.Core].
func (z zapLog) Check(e zapcore.Entry, c *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if z.Enabled(e.Level) {
		return c.AddCore(e, z)
	}
	return c
}

// Write implements [zapcore.Core].
func (z zapLog) Write(e zapcore.Entry, fields []zapcore.Field) error {
	z.log.LogAttrs(context.Background(), level(e.Level), e.Message, attributes(fields)...)
	return nil
}

// Sync implements [zapcore.Core].
func (zapLog) Sync() error { return nil }

// attributes returns fields as our log has them.
func attributes(fields []zapcore.Field) (out []slog.Attr) {
	for _, f := range fields {
		if slices.Contains(visitors, f.Key) {
			continue
		}
		in := zapcore.NewMapObjectEncoder()
		f.AddTo(in)
		for _, key := range slices.Sorted(maps.Keys(in.Fields)) {
			if key != f.Key+"Verbose" { // an error's stack
				out = append(out, slog.Any(key, in.Fields[key]))
			}
		}
	}
	return out
}
