package document_test

import (
	"errors"
	"fmt"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/document"
	"github.com/stele-id/stele/scheme/all"
)

func ExampleDecodeRecord() {
	schemes, err := all.New(all.Config{Now: time.Now})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, line := range []string{
		`{"id":"sid.inpe.br/mtc-m21d/2022/07.20.15.45","aliases":["8jmkd3mgp3w34t/47af772"],"url":"https://example.org/1"}`,
		`{"id":"https://n2t.net/ark:/12345/X54-xz321","aliases":[],"state":"active",
		  "targets":[{"service":"N2L","url":"https://example.org/1","type":"text/html","order":100,"preference":10}],
		  "metadata":{"what":"Dunes","who":"Gomes, Ana"},"persistence":{"level":"permanent","until":"2040-01-01"}}`,
		`{"id":"ark:12345/x1","url":"javascript:alert(1)","titel":"Dunes"}`,
	} {
		r, err := document.DecodeRecord(schemes, []byte(line))
		if problems, ok := errors.AsType[stele.Problems](err); ok {
			for _, p := range problems {
				fmt.Printf("%.75s...\n", p.Error())
			}
			continue
		}
		fmt.Printf("%s\n", document.AppendRecord(nil, r))
	}
	// Output:
	// {"id":"sid.inpe.br/mtc-m21d/2022/07.20.15.45","aliases":["8JMKD3MGP3W34T/47AF772"],"targets":[{"url":"https://example.org/1"}]}
	// {"id":"ark:12345/X54xz321","spelling":"https://n2t.net/ark:/12345/X54-xz321","targets":[{"url":"https://example.org/1","type":"text/html"}],"metadata":{"who":"Gomes, Ana","what":"Dunes"},"persistence":{"level":"permanent","until":"2040-01-01"}}
	// titel: there is no such field; there are id, spelling, aliases, state, tomb...
	// url: "javascript:alert(1)" does not begin with a protocol that is allowed; ...
}
