package document

import (
	"bytes"

	"github.com/stele-id/stele"
)

var errNoList = stele.Messagef("request.body-not-a-record-list", "should be a list of records: [{...},{...}]")

// SplitList returns the items of a list in JSON, without reading them: the caller, who reads
// them, finds out whether they are JSON. It looks only for where each ends.
func SplitList(data []byte) (texts [][]byte, err error) {
	data = bytes.Trim(data, " \t\r\n")
	if len(data) < 2 || data[0] != '[' || data[len(data)-1] != ']' {
		return nil, errNoList
	}
	data = bytes.TrimLeft(data[1:], " \t\r\n")
	if len(data) == 1 {
		return nil, nil
	}
	for {
		n := itemEnd(data)
		if n == len(data) || data[n] == '}' {
			return nil, errNoList
		}
		text := bytes.TrimRight(data[:n], " \t\r\n")
		if len(text) == 0 {
			return nil, stele.Messagef("request.list-item-empty", "item {index} of the list is empty; leave one comma out", len(texts))
		}
		texts = append(texts, text)
		last := data[n] == ']'
		data = bytes.TrimLeft(data[n+1:], " \t\r\n")
		switch {
		case last && len(data) > 0:
			return nil, stele.Messagef("request.list-not-alone", "something follows the list; send one list alone")
		case last:
			return texts, nil
		}
	}
}

// itemEnd returns where the comma or the bracket stands that ends the first item; all
// of data if there is none.
func itemEnd(data []byte) int {
	depth := 0
	for i := 0; i < len(data); i++ {
		switch data[i] {
		case '"':
			for i++; i < len(data) && data[i] != '"'; i++ {
				if data[i] == '\\' {
					i++
				}
			}
		case '{', '[':
			depth++
		case '}', ']':
			if depth == 0 {
				return i
			}
			depth--
		case ',':
			if depth == 0 {
				return i
			}
		}
	}
	return len(data)
}
