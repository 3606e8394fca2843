package auth

import (
	"bytes"
	"sync"

	"github.com/stele-id/stele"
)

// maxParsed is how many cells a Parsed remembers, and maxParsedSize how many bytes each may have.
const (
	maxParsed     = 1024
	maxParsedSize = 4 << 10
)

// Parsed remembers what was read from cells, so that a cell that did not change is not parsed
// again. The caller reads the cell itself for each use, so a change is never missed. The
// zero Parsed is ready. It is used by many goroutines at once.
type Parsed[T any] struct {
	mu    sync.Mutex
	cells map[string]parsedCell[T] // by name
}

type parsedCell[T any] struct {
	from  []byte
	value T
}

// Read returns what parse reads from a cell. The value must not be changed, and parse must depend
// on nothing else than the cell. Errors are not remembered.
func (p *Parsed[T]) Read(c stele.Cell, parse func(stele.Cell) (T, error)) (T, error) {
	p.mu.Lock()
	known, ok := p.cells[c.Name]
	p.mu.Unlock()
	if ok && bytes.Equal(known.from, c.Value) {
		return known.value, nil
	}
	value, err := parse(c)
	if err != nil || len(c.Name)+len(c.Value) > maxParsedSize {
		return value, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cells == nil {
		p.cells = make(map[string]parsedCell[T])
	}
	if _, ok := p.cells[c.Name]; !ok && len(p.cells) >= maxParsed {
		for name := range p.cells { // any one
			delete(p.cells, name)
			break
		}
	}
	p.cells[c.Name] = parsedCell[T]{bytes.Clone(c.Value), value}
	return value, nil
}
