package api

import (
	"bytes"
	"log/slog"
	"sync"
)

// syncBuffer is a buffer that many goroutines write to.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

func newTestLog(b *syncBuffer) *slog.Logger { return slog.New(slog.NewTextHandler(b, nil)) }
