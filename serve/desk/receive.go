package desk

import (
	"cmp"
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/url"
	"strings"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/bulk"
	"github.com/stele-id/stele/bulk/job"
)

// takeUpload reads a form with files. The fields come before the files, which are kept as they
// arrive.
func (c *call) takeUpload() (url.Values, job.Upload, error) {
	if !c.isMultipart() {
		if err := c.readForm(); err != nil {
			return nil, job.Upload{}, err
		}
		u, err := c.keepUpload(c.r.PostForm, strings.NewReader(c.r.PostForm.Get("text")))
		return c.r.PostForm, u, err
	}
	c.extend()
	c.r.Body = http.MaxBytesReader(c.w, c.r.Body, job.MaxTreeForm+maxForm)
	values, parts, file, err := c.readParts()
	var u job.Upload
	switch {
	case err != nil:
	case file != nil:
		u, err = c.h.o.Jobs.UploadFiles(c.ctx, uploadSettings(values), files(parts, file))
	default:
		u, err = c.keepUpload(values, strings.NewReader(values.Get("text")))
	}
	return values, u, err
}

// isMultipart reports whether the form that was sent may have a file.
func (c *call) isMultipart() bool {
	media, _, _ := mime.ParseMediaType(c.r.Header.Get("Content-Type"))
	return media == "multipart/form-data"
}

// readParts reads the fields of a form that come before its first file.
func (c *call) readParts() (values url.Values, parts *multipart.Reader, file *multipart.Part, err error) {
	parts, err = c.r.MultipartReader()
	values = make(url.Values)
	for size := 0; err == nil; {
		var part *multipart.Part
		if part, err = parts.NextPart(); err != nil {
			break
		}
		if part.FileName() != "" {
			return values, parts, part, nil
		}
		text, readErr := io.ReadAll(io.LimitReader(part, int64(maxForm-size+1)))
		if size += len(text); readErr != nil || size > maxForm || len(values) > 100 {
			err = cmp.Or(readErr, error(errLargeText))
			break
		}
		values.Add(part.FormName(), string(text))
	}
	switch {
	case errors.Is(err, io.EOF):
		return values, nil, nil, nil
	case errors.Is(err, errLargeText):
		return values, nil, nil, &stele.Error{Op: "read form", Kind: stele.Invalid, Err: errLargeText}
	}
	return values, nil, nil, errUnreadable()
}

// files returns a function that returns the files of a form one after the other, and io.EOF at the end of the form. If the
// form is cut off, it returns another error, so that no upload lacks a file.
func files(parts *multipart.Reader, part *multipart.Part) func() (string, io.Reader, error) {
	return func() (string, io.Reader, error) {
		for part == nil || part.FileName() == "" {
			var err error
			part, err = parts.NextPart()
			if err == io.EOF { // not errors.Is: a form that is cut off has an error that wraps it
				return "", nil, err
			}
			if err != nil {
				return "", nil, errUnreadable()
			}
		}
		file := part
		part = nil
		return sentPath(file), file, nil
	}
}

// sentPath returns the name of a file as the browser says it. That of a file in a folder which a user has chosen is its path, from
// that folder on; [multipart.Part.FileName] returns no folders.
func sentPath(part *multipart.Part) string {
	_, said, err := mime.ParseMediaType(part.Header.Get("Content-Disposition"))
	if err != nil {
		return part.FileName()
	}
	return said["filename"]
}

// extend gives the browser more time to send a file than a form has.
func (c *call) extend() {
	if c.h.o.UploadTime == 0 {
		return
	}
	until := c.h.o.Now().Add(c.h.o.UploadTime)
	rc := http.NewResponseController(c.w)
	_ = rc.SetReadDeadline(until) // a connection that has no deadlines needs none
	_ = rc.SetWriteDeadline(until.Add(c.h.o.UploadTime))
}

var errLargeText = stele.Messagef("desk.text-too-large", "the text has more than {most} bytes; send it as a file", maxForm)

// keepUpload keeps a text with the settings of a form.
func (c *call) keepUpload(values url.Values, in io.Reader) (job.Upload, error) {
	return c.h.o.Jobs.Upload(c.ctx, "", uploadSettings(values), in)
}

// uploadSettings reads the settings of a form for files.
func uploadSettings(values url.Values) job.Settings {
	s := job.Settings{Encoding: bulk.Auto, Namespace: values.Get("namespace"), Update: values.Get("update") == "yes"}
	s.System, s.Prefix = system(values)
	s.Spaces = values.Get("spaces") == "yes"
	return s
}

// sendFile sends a file that belongs to an upload.
func (c *call) sendFile(u *job.Upload, s *bulk.Survey, suffix string, text []byte) error {
	name, media, ending := strings.TrimSuffix(strings.TrimSuffix(cmp.Or(u.Name, "names"), ".csv"), ".jsonl"), "text/csv; charset=utf-8; header=present", ".csv"
	if u.Files != nil {
		name = u.Files[0].Name
	}
	switch {
	case s.System != "":
		media, ending = "text/plain; charset=utf-8", ".txt"
	case s.JSON:
		media, ending = "application/jsonl; charset=utf-8", ".jsonl"
	}
	head := c.w.Header()
	head.Set("Content-Type", media)
	head.Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": name + suffix + ending}))
	_, _ = c.w.Write(text) // if it fails the client has left
	return nil
}
