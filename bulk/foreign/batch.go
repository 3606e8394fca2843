package foreign

import (
	"bytes"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/bulk"
	"github.com/stele-id/stele/wire/hdl"
)

// batchCommands are the commands of batch files (specification, section 5).
var batchCommands = []string{"CREATE", "ADD", "MODIFY", "DELETE", "REMOVE", "AUTHENTICATE", "SESSIONSETUP", "HOME", "UNHOME"}

func isCommand(word string) bool { return slices.Contains(batchCommands, word) }

// batch reads a batch file: commands, each with lines up to an empty one.
type batch struct {
	w  *window
	to *folded
}

func readBatch(w *window, to *folded) error {
	b := batch{w, to}
	for {
		line := w.line
		text, long, ok := w.nextLine()
		if !ok {
			return w.failure()
		}
		if line == 1 {
			text = bytes.TrimPrefix(text, []byte("\xef\xbb\xbf"))
		}
		if long > 0 {
			return b.broken(line, tooLong(long, maxLine))
		}
		fields := strings.TrimSpace(string(text))
		if fields == "" {
			continue
		}
		command, rest, _ := strings.Cut(fields, " ")
		if err := b.command(strings.ToUpper(command), strings.TrimSpace(rest), line); err != nil {
			return err
		}
	}
}

// broken refuses the whole file: what follows can't be understood without this line.
func (b *batch) broken(line int, err error) error {
	return failf(stele.Invalid, "import.foreign-batch-broken", "{file}, line {line}: {cause}", b.w.name, line, err)
}

func (b *batch) command(command, rest string, line int) error {
	switch command {
	case "AUTHENTICATE": // the next line is a secret, or says where a key is: it is neither read nor shown
		_, _, _ = b.w.nextLine()
		return nil
	case "SESSIONSETUP":
		return b.lines(func(int, string) error { return nil })
	case "HOME":
		return b.lines(func(line int, text string) error {
			if o, cut := b.cut(text); cut {
				return b.to.head(bulk.Row{Line: line, Text: []byte(text), Err: failf(stele.Invalid, "", "{cause}", o.wrong())})
			}
			return b.to.home(strings.TrimSpace(text), line)
		})
	case "UNHOME":
		return b.lines(func(_ int, text string) error { b.to.unhome(strings.TrimSpace(text)); return nil })
	case "CREATE":
		return b.values(rest, line, opCreate)
	case "ADD":
		return b.values(rest, line, opAdd)
	case "MODIFY":
		return b.values(rest, line, opModify)
	case "DELETE":
		if o, bad := b.cut(rest); bad {
			return b.to.add(rest, line, o)
		}
		return b.to.add(rest, line, op{kind: opDelete})
	case "REMOVE":
		return b.remove(rest, line)
	}
	return b.broken(line, stele.Messagef("import.foreign-batch-command", `"{command}" is not a command; there are {commands}`, command, strings.Join(batchCommands, ", ")))
}

// cut refuses a command if the file ends within its last line, or if it is not UTF-8. A handle, an index or a URL that is cut off is
// another one, and the programs that write such files end each line.
func (b *batch) cut(texts ...string) (o op, bad bool) {
	switch {
	case b.w.unended():
		return op{kind: opUnended, text: b.w.name}, true
	case slices.ContainsFunc(texts, func(text string) bool { return !utf8.ValidString(text) }):
		return op{kind: opNotUTF8}, true
	}
	return o, false
}

// lines reads the lines of a command, up to an empty one. A line of blanks does not end them.
func (b *batch) lines(each func(line int, text string) error) error {
	for {
		line := b.w.line
		text, long, ok := b.w.nextLine()
		if !ok {
			return b.w.failure()
		}
		if len(text) == 0 {
			return nil
		}
		said := string(text)
		if long > 0 {
			said = "" // no line of a command is so long
		}
		if strings.TrimSpace(said) == "" && long == 0 {
			continue
		}
		if err := each(line, said); err != nil {
			return err
		}
	}
}

// values reads the values of a command. After a line that can't be read the rest of the command is
// passed over.
func (b *batch) values(name string, line int, kind byte) error {
	o := op{kind: kind}
	var bad error
	at := 0
	strange := ""
	err := b.lines(func(line int, text string) error {
		if strange == "" && !utf8.ValidString(text) {
			strange = text
		}
		if bad != nil {
			return nil
		}
		var v hdl.Value
		if v, bad = batchValue(text); bad != nil {
			at = line
		} else if o.values = append(o.values, v); len(o.values) > hdl.MaxValues {
			bad, at = stele.Messagef("import.foreign-values-too-many", "there are {count} values; {most} are the most", len(o.values), hdl.MaxValues), line
		}
		return nil
	})
	if err != nil {
		return err
	}
	if o, cut := b.cut(name, strange); cut {
		return b.to.add(name, line, o)
	}
	if bad != nil {
		what := stele.Messagef("import.foreign-batch-line", "{command} {name}: line {line}: {cause}", commands[kind], name, at, bad)
		return b.to.add(name, line, op{kind: opFault, text: what.Error()})
	}
	return b.to.add(name, line, o)
}

// remove reads REMOVE 2,3:P/1.
func (b *batch) remove(rest string, line int) error {
	list, name, ok := strings.Cut(rest, ":")
	o := op{kind: opRemove}
	for text := range strings.SplitSeq(list, ",") {
		n, err := strconv.ParseUint(strings.TrimSpace(text), 10, 32)
		if err != nil || !ok {
			return b.broken(line, stele.Messagef("import.foreign-batch-remove", "REMOVE is followed by indexes and a handle, as in REMOVE 2,3:20.500.12345/1"))
		}
		o.index = append(o.index, uint32(n))
	}
	if o, cut := b.cut(name); cut {
		return b.to.add(strings.TrimSpace(name), line, o)
	}
	return b.to.add(strings.TrimSpace(name), line, o)
}

// batchValue reads a line: index type ttl permissions keyword data.
func batchValue(text string) (v hdl.Value, err error) {
	word := func() string {
		text = strings.TrimLeft(text, " \t")
		at := strings.IndexAny(text, " \t")
		if at < 0 {
			at = len(text)
		}
		first := text[:at]
		text = text[at:]
		return first
	}
	index, err := strconv.ParseUint(word(), 10, 32)
	if err != nil {
		return v, stele.Messagef("import.foreign-batch-index", "the line does not begin with an index; write it as in 1 URL 86400 1110 UTF8 https://example.org/")
	}
	kind := word()
	ttl, err := strconv.ParseUint(word(), 10, 32)
	if err != nil {
		return v, stele.Messagef("import.foreign-batch-ttl", "the TTL of the value {index} is not a number of seconds up to {most}", index, uint32(math.MaxUint32))
	}
	permissions := word()
	if len(permissions) != 4 || strings.Trim(permissions, "01") != "" {
		return v, stele.Messagef("import.foreign-batch-permissions", "the permissions of the value {index} are not four digits 0 or 1", index)
	}
	v = hdl.Value{Index: uint32(index), Type: []byte(kind), TTL: uint32(ttl)}
	for _, c := range []byte(permissions) {
		v.Permissions = v.Permissions<<1 | (c - '0')
	}
	keyword := strings.ToUpper(word())
	if v.Data, err = batchData(keyword, strings.TrimSpace(text), v.Index); err != nil && isSecret(kind) {
		// What stands in the place of the keyword may be the secret itself.
		err = stele.Messagef("import.foreign-batch-secret", "the value {index} is a secret that can't be read; write it as in {index} HS_SECKEY 86400 1100 UTF8 and the secret", index)
	}
	return v, err
}

// batchData reads the data of a value by its keyword.
func batchData(keyword, text string, index uint32) ([]byte, error) {
	switch keyword {
	case "UTF8":
		if text == "" {
			return nil, stele.Messagef("import.foreign-batch-empty", "the value {index} has no data after UTF8", index)
		}
		return []byte(text), nil
	case "ADMIN":
		at, rest, _ := strings.Cut(text, ":")
		digits, handle, ok := strings.Cut(rest, ":")
		n, err := strconv.ParseUint(strings.TrimSpace(at), 10, 32)
		rights, err2 := hdl.ParseBatchPermissions(strings.TrimSpace(digits))
		if handle = strings.TrimSpace(handle); !ok || err != nil || err2 != nil || handle == "" {
			return nil, stele.Messagef("import.foreign-batch-admin", "the value {index} is not an administrator; write it as in ADMIN 300:110011111111:0.NA/20.500.12345", index)
		}
		a := hdl.Admin{Permissions: rights, Identity: hdl.Reference{Handle: handle, Index: uint32(n)}}
		return a.Append(nil), nil
	case "LIST":
		var refs []hdl.Reference
		for item := range strings.SplitSeq(text, ";") {
			if item = strings.TrimSpace(item); item == "" {
				continue
			}
			at, handle, ok := strings.Cut(item, ":")
			n, err := strconv.ParseUint(strings.TrimSpace(at), 10, 32)
			if handle = strings.TrimSpace(handle); !ok || err != nil || handle == "" {
				return nil, stele.Messagef("import.foreign-batch-list", "the value {index} is not a list of values; write it as in LIST 300:20.500.12345/A;301:20.500.12345/B;", index)
			}
			refs = append(refs, hdl.Reference{Handle: handle, Index: uint32(n)})
		}
		return hdl.AppendReferences(nil, refs), nil
	case "FILE":
		return nil, stele.Messagef("import.foreign-batch-file", "the data of the value {index} is in the file {path}, which is not read; write the value with a Handle client", index, text)
	}
	return nil, stele.Messagef("import.foreign-batch-keyword", `the value {index} has the unknown keyword "{keyword}"; there are UTF8, ADMIN, LIST and FILE`, index, keyword)
}
