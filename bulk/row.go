package bulk

import (
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/stele-id/stele"
)

// RowOptions say how a row is turned into a record's document.
type RowOptions struct {
	// Merges makes the document one that is merged with what is registered: what the
	// row says of a target stands in "target".
	Merges bool

	// EmptyClears makes an empty cell remove what its field says. Otherwise it says
	// nothing.
	EmptyClears bool
}

// IsEmpty reports whether a row has no cell with anything in it.
func IsEmpty(cells []string) bool {
	for _, cell := range cells {
		if strings.TrimSpace(cell) != "" {
			return false
		}
	}
	return true
}

// Document turns a row into a record's document, in JSON.
func (h Header) Document(cells []string, o RowOptions) ([]byte, error) {
	if len(cells) != len(h) {
		return nil, stele.Messagef("row.number-of-cells-differs", "the row has {cells} cells, and the header has {expected}", len(cells), len(h))
	}
	d := rowObject{root: make(map[string]any)}
	for i, cell := range cells {
		if h[i] == Ignored {
			continue
		}
		if !utf8.ValidString(cell) {
			return nil, stele.Messagef("row.cell-not-utf8", "cell {cell} {cause}; if the file has another encoding, name it with --encoding", i+1, errNotUTF8)
		}
		if cell = Restore(cell); cell == "" && !o.EmptyClears {
			continue
		}
		if err := d.set(h[i], cell); err != nil {
			return nil, stele.Messagef("row.cell-wrong", "cell {cell}, {column}: {cause}", i+1, h[i], err)
		}
	}
	d.finish(o.Merges)
	return json.Marshal(d.root)
}

// document is a record's document in the making. A value that is nil is null: it removes
// what is there.
type rowObject struct {
	root     map[string]any
	target   map[string]any
	metadata map[string]any
	persists map[string]any
	grave    map[string]any
}

func put(m *map[string]any, name string, value any) {
	if *m == nil {
		*m = make(map[string]any)
	}
	(*m)[name] = value
}

// set says what a cell says. An empty one removes.
func (d *rowObject) set(field, cell string) (err error) {
	var value any
	if cell != "" {
		if value, err = valueOf(field, cell); err != nil {
			return err
		}
	}
	switch field {
	case "id":
		if value != nil {
			d.root["id"] = value
		}
	case "aliases", "state", "targets", "readers", "values", "signatures", "redacted", "created", "modified", "by":
		d.root[field] = value
	case "url", "service", "type", "language", "order", "preference", "ttl", "partial":
		put(&d.target, field, value)
	case "redirect":
		put(&d.target, "status", value)
	case "reason":
		put(&d.grave, "reason", value)
	case "withdrawn":
		put(&d.grave, "at", value)
	case "replacement":
		put(&d.grave, "replacement", value)
	case "metadata":
		more, _ := value.(map[string]any)
		for name, v := range more {
			put(&d.metadata, name, v)
		}
	default:
		if name, ok := strings.CutPrefix(field, "persistence."); ok {
			put(&d.persists, name, value)
		} else {
			put(&d.metadata, strings.TrimPrefix(field, meta), value)
		}
	}
	return nil
}

// valueOf reads a cell as its field has it.
func valueOf(field, cell string) (any, error) {
	switch field {
	case "id", "url":
		return strings.TrimSpace(cell), nil
	case "aliases", "readers":
		return listOf(cell)
	case "targets", "values", "signatures", "metadata":
		var v any
		d := json.NewDecoder(strings.NewReader(cell))
		d.UseNumber()
		if err := d.Decode(&v); err != nil || d.More() {
			return nil, stele.Messagef("row.cell-not-json", "this is not JSON, as an export has it here")
		}
		if _, ok := v.(map[string]any); ok != (field == "metadata") {
			return nil, stele.Messagef("row.cell-not-as-exported", "this is not what an export has here; leave the column out, or keep its cells")
		}
		return v, nil
	case "order", "preference", "ttl", "redirect":
		n, err := strconv.ParseUint(strings.TrimSpace(cell), 10, 32)
		if err != nil {
			return nil, stele.Messagef("row.cell-not-a-whole-number", `"{value}" is not a whole number`, cell)
		}
		return n, nil
	case "partial", "redacted":
		switch strings.ToLower(strings.TrimSpace(cell)) {
		case "true", "yes", "1":
			return true, nil
		case "false", "no", "0":
			return false, nil
		}
		return nil, stele.Messagef("value.not-a-boolean", `"{value}" is neither true nor false`, cell)
	}
	return cell, nil
}

// listOf reads a list: words with spaces between them, or a list in JSON.
func listOf(cell string) (any, error) {
	if !strings.HasPrefix(strings.TrimSpace(cell), "[") {
		return strings.Fields(cell), nil
	}
	var list []string
	if err := json.Unmarshal([]byte(cell), &list); err != nil {
		return nil, stele.Messagef("row.cell-not-a-list-of-texts", "this is not a list of texts in JSON")
	}
	return list, nil
}

// finish puts the parts together.
func (d *rowObject) finish(merges bool) {
	for name, part := range map[string]map[string]any{"metadata": d.metadata, "persistence": d.persists, "tombstone": d.grave} {
		if !merges {
			dropNull(part)
		}
		if len(part) > 0 {
			d.root[name] = part
		}
	}
	if merges {
		if d.target != nil {
			d.root["target"] = d.target
		}
		return
	}
	dropNull(d.root)
	dropNull(d.target)
	if len(d.target) > 0 {
		more, _ := d.root["targets"].([]any)
		d.root["targets"] = append([]any{d.target}, more...)
	}
}

func dropNull(m map[string]any) {
	for name, v := range m {
		if v == nil {
			delete(m, name)
		}
	}
}
