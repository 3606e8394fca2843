package foreign

import (
	"encoding/hex"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/bulk"
	"github.com/stele-id/stele/wire/hdl"
)

// cell is a value of a row.
type cell struct {
	null   bool
	octets bool // it was written in hexadecimal, and is what it says
	text   []byte
}

// row hands over a row of one of the tables.
func (r *sqlReader) row(table string, columns []string, cells []cell, line int) error {
	if len(cells) != len(columns) {
		return r.fault(table, columns, cells, line, failf(stele.Invalid, "import.foreign-sql-row", "the row has {cells} values for {columns} columns", len(cells), len(columns)))
	}
	get := func(name string) cell {
		if at := slices.Index(columns, name); at >= 0 {
			return cells[at]
		}
		return cell{null: true}
	}
	octets := func(name string) []byte { return r.octets(table+"."+name, get(name)) }
	if table == "nas" {
		return r.to.home(string(octets("na")), line)
	}
	name := string(octets("handle"))
	v, err := sqlValue(get, octets)
	if err != nil {
		what := stele.Messagef("import.foreign-sql-value", "a row of {name}: {cause}", stele.Quote(name), err)
		return r.to.add(name, line, op{kind: opFault, text: what.Error()})
	}
	return r.to.add(name, line, op{kind: opPut, values: []hdl.Value{v}})
}

// fault refuses a row of which these cells could be read, and with it the record that it is a part of.
func (r *sqlReader) fault(table string, columns []string, cells []cell, line int, err error) error {
	if at := slices.Index(columns, "handle"); table == "handles" && at >= 0 && at < len(cells) {
		name := string(r.octets("handles.handle", cells[at]))
		what := stele.Messagef("import.foreign-sql-value", "a row of {name}: {cause}", stele.Quote(name), stele.Reason(err))
		return r.to.add(name, line, op{kind: opFault, text: what.Error()})
	}
	return r.to.head(bulk.Row{Line: line, Err: err})
}

// octets returns what a cell says, of a column of octets or text.
func (r *sqlReader) octets(column string, c cell) []byte {
	if c.null || c.octets || r.mysql {
		return c.text
	}
	kind := r.types[column]
	if kind != "" && kind != "bytea" {
		return c.text
	}
	if digits, ok := strings.CutPrefix(string(c.text), `\x`); ok {
		if b, err := hex.DecodeString(digits); err == nil {
			return b
		}
	}
	if kind == "bytea" { // the older form: \\ and \ooo
		return unescapeCopy(c.text)
	}
	return c.text
}

// sqlValue makes a value of a row. Its errors do not quote cells: where columns are in another order than was said, any cell may be a secret.
func sqlValue(get func(string) cell, octets func(string) []byte) (v hdl.Value, err error) {
	number := func(name string, missing uint32) uint32 {
		c := get(name)
		if c.null || err != nil {
			return missing
		}
		// Java has no unsigned numbers, so that one above its range is a negative one there.
		n, bad := strconv.ParseInt(strings.TrimSpace(string(c.text)), 10, 64)
		if bad != nil || n < math.MinInt32 || n > math.MaxUint32 {
			err = stele.Messagef("import.foreign-sql-number", "{column} is not a number of 32 bits", name)
		}
		return uint32(n)
	}
	flag := func(name string, bit uint8, missing bool) {
		c := get(name)
		on := missing
		if !c.null {
			switch strings.ToLower(strings.TrimSpace(string(c.text))) {
			case "t", "true", "1", "y", "yes", "\x01":
				on = true
			case "f", "false", "0", "n", "no", "\x00", "":
				on = false
			default:
				err = stele.Messagef("import.foreign-sql-flag", "{column} is not true or false", name)
			}
		}
		if on {
			v.Permissions |= bit
		}
	}
	v.Index = number("idx", 0)
	v.TTLType = uint8(min(number("ttl_type", hdl.TTLRelative), math.MaxUint8))
	v.TTL = number("ttl", stele.DefaultHandleTTL)
	v.Timestamp = number("timestamp", 0)
	flag("admin_read", hdl.AdminRead, true)
	flag("admin_write", hdl.AdminWrite, true)
	flag("pub_read", hdl.PublicRead, true)
	flag("pub_write", hdl.PublicWrite, false)
	v.Type, v.Data = octets("type"), octets("data")
	if err == nil {
		v.References, err = parseRefs(string(octets("refs")))
	}
	return v, err
}

// parseRefs reads the references of a value: index:handle with tabs between them; in a handle tab, line
// ends and backslash are escaped; and then every character that is not printable ASCII is % and the
// four hexadecimal digits of its UTF-16 unit.
func parseRefs(text string) (refs []hdl.Reference, err error) {
	if text == "" {
		return nil, nil
	}
	var units []uint16
	for i := 0; i < len(text); {
		if text[i] == '%' {
			n, err := strconv.ParseUint(text[i+1:min(len(text), i+5)], 16, 16)
			if err != nil || i+5 > len(text) {
				return nil, stele.Messagef("import.foreign-sql-refs", "refs is not a list of references")
			}
			units = append(units, uint16(n))
			i += 5
			continue
		}
		c, size := utf8.DecodeRuneInString(text[i:])
		units = utf16.AppendRune(units, c)
		i += size
	}
	for item := range strings.SplitSeq(string(utf16.Decode(units)), "\t") {
		if item == "" {
			continue
		}
		at, handle, ok := strings.Cut(item, ":")
		n, err := strconv.ParseInt(at, 10, 64)
		if !ok || err != nil || n < math.MinInt32 || n > math.MaxUint32 || len(handle) > hdl.MaxHandle {
			return nil, stele.Messagef("import.foreign-sql-refs", "refs is not a list of references")
		}
		refs = append(refs, hdl.Reference{Handle: unescapeRef.Replace(handle), Index: uint32(n)})
		if len(refs) > stele.MaxReferences {
			return nil, stele.Messagef("import.foreign-sql-too-many-refs", "refs has more than {most} references", stele.MaxReferences)
		}
	}
	return refs, nil
}

var unescapeRef = strings.NewReplacer(`\t`, "\t", `\n`, "\n", `\r`, "\r", `\\`, `\`)
