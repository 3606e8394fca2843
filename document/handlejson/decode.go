package handlejson

import (
	"encoding/hex"
	"math"
	"strconv"
	"strings"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/document"
	"github.com/stele-id/stele/wire/hdl"
)

// The members of each object, as a message about an unknown one lists them.
const (
	recordFields    = "handle values responseCode"
	valueFields     = "index type data ttl timestamp references permissions"
	referenceFields = "handle index"
	dataFields      = "format value"
)

const op = "read handle values"

// usualValues is how many values most handles have at most.
const usualValues = 4

// DecodeValues reads the values of a handle in each form in which the REST interface takes
// them: a list, an object with the member "values", or one value.
//
// It is strict. What is unknown, given twice, of another type or too large is a problem, and all
// problems are reported together: the error, of Kind Invalid, holds [stele.Problems], each
// with its path. It does not judge what [stele.Record.Validate] does, such as an index that is 0.
// Permissions are read as they stand.
func DecodeValues(data []byte) ([]stele.HandleValue, error) {
	_, values, err := decode(data)
	return values, err
}

// DecodeRecord reads {"handle":...,"values":[...]}, as an answer of the REST interface and the
// files of the reference implementation have it. The name is "" if there is none.
func DecodeRecord(data []byte) (handle string, values []stele.HandleValue, err error) {
	return decode(data)
}

func decode(data []byte) (handle string, values []stele.HandleValue, err error) {
	r := reader{document.NewText(data)}
	if r.Next() == '[' {
		values = r.values()
	} else {
		handle, values = r.record()
	}
	if err := r.Err(op); err != nil {
		return "", nil, err
	}
	return handle, values, nil
}

// decodeData reads the data of a value.
func decodeData(text []byte) ([]byte, error) {
	r := reader{document.NewText(text)}
	data := r.data()
	return data, r.Err(op)
}

// reader reads values.
type reader struct{ *document.Text }

// faultf reports what is wrong with what is being read.
func (r reader) faultf(code, text string, args ...any) { r.Fault(stele.Messagef(code, text, args...)) }

func (r reader) values() (list []stele.HandleValue) {
	list = make([]stele.HandleValue, 0, usualValues)
	r.Array(stele.MaxValues, func(int) {
		v, index := begin(), false
		r.Object(valueFields, func(name string) bool { return r.value(name, &v, &index) })
		list = append(list, v)
	})
	return list
}

// record reads an object with values, or one value. Which of both it is, its members say.
func (r reader) record() (handle string, list []stele.HandleValue) {
	v, isValue := begin(), false
	r.Object(recordFields+" "+valueFields, func(name string) bool {
		switch name {
		case "values":
			list = r.values()
		case "handle":
			handle = r.String()
		case "responseCode":
			r.Uint(math.MaxUint32)
		default:
			return r.value(name, &v, &isValue)
		}
		return true
	})
	switch {
	case isValue && (list != nil || handle != ""):
		r.faultf("handle-json.value-or-values", "is a value and has values; give one of both")
	case isValue:
		list = []stele.HandleValue{v}
	case list == nil:
		r.faultf("handle-json.values-missing", `has no values; give a list, or an object with "values"`)
	}
	return handle, list
}

// begin returns a value whose members have their defaults.
func begin() stele.HandleValue {
	return stele.HandleValue{TTL: stele.DefaultHandleTTL, Permissions: stele.DefaultPermissions}
}

// value reads a member of a value.
func (r reader) value(name string, v *stele.HandleValue, any *bool) bool {
	switch name {
	case "index":
		v.Index = r.index()
	case "type":
		v.Type = r.String()
	case "data":
		v.Data = r.data()
	case "ttl":
		if v.TTLAbsolute = r.Next() == '"'; v.TTLAbsolute {
			v.TTL = r.Seconds()
		} else {
			v.TTL = uint32(r.Uint(math.MaxUint32))
		}
	case "timestamp":
		v.Timestamp = r.Seconds()
	case "references":
		r.Array(stele.MaxReferences, func(int) { v.References = append(v.References, stele.HandleReference(r.reference())) })
	case "permissions":
		v.Permissions = r.permissions()
	default:
		return false
	}
	*any = true
	return true
}

// index reads a number. Clients in use write that of an administrator as a string.
func (r reader) index() uint32 {
	if r.Next() != '"' {
		return uint32(r.Uint(math.MaxUint32))
	}
	text := r.String()
	n, err := strconv.ParseUint(text, 10, 32)
	if err != nil {
		r.faultf("handle-json.not-an-index", `"{index}" is not an index; write a whole number from 0 to {limit}`, text, uint32(math.MaxUint32))
	}
	return uint32(n)
}

func (r reader) reference() (ref Reference) {
	r.Object(referenceFields, func(name string) bool {
		switch name {
		case "handle":
			ref.Handle = r.handle()
		case "index":
			ref.Index = r.index()
		default:
			return false
		}
		return true
	})
	return ref
}

// handle reads the name of a handle.
func (r reader) handle() string {
	text := r.String()
	if len(text) > hdl.MaxHandle {
		r.faultf("value.too-long", "has {size} bytes; {most} are the most", len(text), hdl.MaxHandle)
		return ""
	}
	return text
}

// permissions reads four digits: administrators' reading and writing, then the public's.
func (r reader) permissions() (set stele.Permission) {
	text := r.String()
	if len(text) != 4 || strings.Trim(text, "01") != "" {
		r.faultf("handle-json.not-permissions", `"{permissions}" are not permissions; write four digits 0 or 1, as in 1110`, text)
		return 0
	}
	for _, c := range []byte(text) {
		set = set<<1 | stele.Permission(c-'0')
	}
	return set
}

// data reads the data of a value: a text, or a format and what has it.
func (r reader) data() (data []byte) {
	if r.Next() == '"' {
		return octets(r.String())
	}
	format, given := "", false
	var later func(func())
	r.Object(dataFields, func(name string) bool {
		switch name {
		case "format":
			format = r.String()
		case "value":
			if given = true; format != "" {
				data = r.formatted(format)
			} else {
				later = r.Later() // until the format is known
			}
		default:
			return false
		}
		return true
	})
	if !given {
		r.faultf("handle-json.data-without-value", `has no value; write data as in {"format":"string","value":"..."}`)
		return nil
	}
	if later != nil {
		later(func() { data = r.formatted(format) })
	}
	return data
}

// octets returns a text as data; nil if it is empty.
func octets(text string) []byte {
	if text == "" {
		return nil
	}
	return []byte(text)
}

// formatted reads a value of a format.
func (r reader) formatted(format string) []byte {
	switch format {
	case formatString:
		return octets(r.String())
	case formatBase64:
		return r.Bytes()
	case formatHex:
		text := r.String()
		b, err := hex.DecodeString(text)
		if err != nil {
			r.faultf("handle-json.not-hex", "is not hexadecimal; write two digits for each byte")
		}
		return octets(string(b))
	case formatAdmin:
		return r.admin()
	case formatList:
		return r.list()
	case formatSite:
		return r.site()
	case formatKey:
		return r.key()
	}
	r.Later()
	r.faultf("handle-json.format-unknown", `has the unknown format "{format}"; there are string, base64, hex, admin, vlist, site and key`, format)
	return nil
}
