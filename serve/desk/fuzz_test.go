package desk

import (
	"fmt"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/scheme/all"
	"github.com/stele-id/stele/web/language"
)

// FuzzForm: any form of a record is read within limits, changed by any button, and becomes a record, or says at its
// fields what is wrong.
func FuzzForm(f *testing.F) {
	schemes := must(all.New(all.Config{Now: time.Now}))(f)
	languages := must(language.New())(f)
	c := &call{h: &Handler{o: Options{Schemes: schemes}}, language: languages.English()}
	many := ""
	for i := range stele.MaxTargets + 2 {
		many += fmt.Sprintf("&target.%d.url=https%%3A%%2F%%2Fexample.org%%2F%d", i, i)
	}
	for _, seed := range []string{
		"namespace=ark%3A12345%2Fx5&own=&once=1&what=A+map&who=Lima&when=1924&target.0.url=https%3A%2F%2Fexample.org%2F1&target.0.service=N2L&target.0.type=text%2Fhtml&target.0.order=100&level=stable&until=2050-01-01",
		"target.0.url=x&target.0.order=70000&target.0.ttl=-1&target.0.status=abc&target.0.partial=yes&target.1.url=&target.2.url=https%3A%2F%2Fexample.org",
		"more.0.key=what&more.0.value=x&more.1.key=a&more.1.value=b&more.2.key=a&more.2.value=c&version=18446744073709551616", "alias=ark%3A12345%2Fx1%0D%0Anonsense%0D%0A%0D%0A&readers=user%3Aana%0Agroup%3A", "reserve=yes&note=+a%0D%0Ab+", many[1:], "%zz", "a;b", "",
	} {
		f.Add(seed, "add-target", "targets[0].url")
		f.Add(seed, "remove-target.0", "metadata.what")
		f.Add(seed, "remove-target.-1", "targets[99999999999999999999].order")
	}
	f.Fuzz(func(t *testing.T, text, do, at string) {
		values, _ := url.ParseQuery(text) // what of it can be read, as net/http has it
		form := parseForm(values)
		form.edit(do)
		if len(form.targets) > stele.MaxTargets || len(form.more) > stele.MaxFields {
			t.Fatalf("%d targets, %d fields", len(form.targets), len(form.more))
		}
		form.field(at)
		rec := &stele.Record{ID: must(schemes.Parse("ark:12345/x1"))(t), State: stele.Active}
		if err := form.apply(c, rec); err != nil {
			if len(form.wrong) == 0 {
				t.Errorf("%v, and no field says why", err)
			}
			return
		}
		rows := 0
		for _, target := range form.targets {
			if !target.isEmpty() {
				rows++
			}
		}
		if len(rec.Targets) != rows || len(rec.Aliases) > strings.Count(form.alias, "\n")+1 {
			t.Errorf("%d rows make %d targets, and %d aliases", rows, len(rec.Targets), len(rec.Aliases))
		}
		again := formOf(rec)
		other := &stele.Record{ID: rec.ID, State: rec.State, Aliases: rec.Aliases}
		if err := again.apply(c, other); err != nil || len(other.Targets) != len(rec.Targets) {
			t.Errorf("the form of the record is refused: %v %v", err, again.wrong)
		}
	})
}

// FuzzParts: a form with a file is read within limits, or refused as one that can't be read.
func FuzzParts(f *testing.F) {
	const kind = "multipart/form-data; boundary=b"
	f.Add(kind, "--b\r\nContent-Disposition: form-data; name=\"namespace\"\r\n\r\nark:12345/x5\r\n--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"maps.csv\"\r\n\r\nid,url\r\n--b--\r\n")
	f.Add(kind, "--b\r\nContent-Disposition: form-data; name=\"text\"\r\n\r\nid,url\n--b")
	f.Add(kind, "--b\r\nContent-Disposition: form-data\r\n\r\n\r\n--b--\r\n")
	f.Add(kind, "--b--")
	f.Add(kind, "")
	f.Add("multipart/form-data", "--b--")
	f.Add("multipart/form-data; boundary=\"", "x")
	f.Add("text/plain", "a=b")
	f.Fuzz(func(t *testing.T, kind, body string) {
		r := httptest.NewRequest("POST", "/.desk/many", strings.NewReader(body))
		r.Header.Set("Content-Type", kind)
		c := &call{w: httptest.NewRecorder(), r: r}
		c.isMultipart()
		values, parts, file, err := c.readParts()
		if err != nil {
			if stele.KindOf(err) != stele.Invalid || file != nil {
				t.Errorf("%v is %s", err, stele.KindOf(err))
			}
			return
		}
		size := 0
		for _, list := range values {
			for _, text := range list {
				size += len(text)
			}
		}
		if size > maxForm || len(values) > 101 {
			t.Errorf("%d values of %d bytes", len(values), size)
		}
		if file == nil {
			return
		}
		next := files(parts, file)
		for {
			name, _, err := next()
			if err != nil {
				return
			}
			if name == "" {
				t.Error("a file has no name")
			}
		}
	})
}
