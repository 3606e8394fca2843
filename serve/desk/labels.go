package desk

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/search"
	"github.com/stele-id/stele/web"
	"github.com/stele-id/stele/web/deskpage"
)

// maxLabels is how many labels a sheet has. Browsers take a while to print more.
const maxLabels = 120

// labelSizes are the sizes of labels, the usual one first.
var labelSizes = []string{"medium", "small", "large"}

// labels shows a sheet of labels to be printed: of the records that the field id names, or of
// those that a search finds.
func (c *call) labels() error {
	values := c.r.URL.Query()
	v := &deskpage.Labels{Frame: c.frame("labels.title", "names"), Size: values.Get("size")}
	if !slices.Contains(labelSizes, v.Size) {
		v.Size = labelSizes[0]
	}
	for _, size := range labelSizes {
		v.Sizes = append(v.Sizes, deskpage.Option{Value: size, Text: c.language.Text("labels." + size), Chosen: size == v.Size})
	}
	for name, list := range values {
		if name == "size" {
			continue
		}
		for _, value := range list {
			v.Kept = append(v.Kept, deskpage.Kept{Name: name, Value: value})
		}
	}
	records, next, err := c.labelled(values)
	if err != nil {
		return err
	}
	if next != 0 {
		values.Set("cursor", strconv.FormatUint(next, 10))
		v.Next = Root + "labels?" + values.Encode()
	}
	for _, name := range []string{"size", "cursor"} {
		values.Del(name)
	}
	v.Back = Root + "names?" + values.Encode()
	if values.Has("id") && len(records) == 1 {
		v.Back = recordURL(records[0].ID)
	}
	for _, rec := range records {
		subject, err := c.subject(rec)
		if err != nil {
			return err
		}
		if subject.Base == "" {
			return errNoAddress(rec.ID)
		}
		if _, err := web.NewQR(subject.Self); err != nil {
			v.Unfit = append(v.Unfit, spelled(rec))
			continue
		}
		v.List = append(v.List, deskpage.Label{Title: rec.Metadata[stele.What], ID: spelled(rec), Address: subject.Self, QR: qrURL(rec.ID)})
	}
	return c.show(http.StatusOK, "labels", v)
}

// labelled returns the records that a query asks labels of, and where the next sheet begins, 0 if
// this is the last.
func (c *call) labelled(values url.Values) (records []*stele.Record, next uint64, err error) {
	if list := values["id"]; len(list) > 0 {
		for _, text := range list[:min(len(list), maxLabels)] {
			rec, err := c.record(url.Values{"id": {text}})
			if err != nil {
				return nil, 0, err
			}
			records = append(records, rec)
		}
		return records, 0, nil
	}
	q, problems := c.query(values)
	if len(problems) > 0 {
		return nil, 0, stele.Errorf("find names", stele.ID{}, stele.Invalid, "desk.filter-wrong", "a filter is wrong: {problem}", problems[0].Text)
	}
	if c.h.o.Find == nil {
		return nil, 0, errNoSearch()
	}
	q.Limit = min(maxLabels, search.MaxLimit)
	page, err := c.h.o.Find(c.ctx, *q)
	return page.Records, page.Next, err
}

// errNoSearch says that the server has no search index.
func errNoSearch() error {
	return stele.Errorf("find names", stele.ID{}, stele.Unavailable, "desk.no-search", "this server can't search by words; an administrator names a folder in search-index")
}

// errNoAddress says that names have no address that could be printed.
func errNoAddress(id stele.ID) error {
	return stele.Errorf("show address", id, stele.Conflict, "desk.public-address-missing", "the server does not know its public address; an administrator sets base")
}
