package server

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/web"
	"github.com/stele-id/stele/web/language"
)

// pages makes the pages, in the languages and with the face that the operator wants.
func (s *server) pages() (*web.Pages, *language.Catalog, error) {
	languages, err := s.languages()
	if err != nil {
		return nil, nil, err
	}
	face := web.Face{Name: s.SiteName, Contact: s.SiteContact, Accent: s.SiteColour, AccentDark: s.SiteColourDark}
	if a := s.o.Frozen; a != nil {
		face.Archive = &web.Archive{Of: a.Origin, At: a.At}
	}
	if s.SiteLogo != "" {
		if face.Logo, err = readBounded(s.SiteLogo, web.MaxLogo+1); err != nil {
			return nil, nil, wrongFace(err)
		}
	}
	if s.SiteTexts != "" {
		if face.Texts, err = readTexts(s.SiteTexts, languages); err != nil {
			return nil, nil, wrongFace(err)
		}
	}
	pages, err := web.New(languages, face)
	if err != nil {
		return nil, nil, wrongFace(err)
	}
	return pages, languages, nil
}

// languages returns the languages that the site offers.
func (s *server) languages() (*language.Catalog, error) {
	languages, err := language.New()
	if err != nil {
		return nil, err
	}
	if languages, err = languages.Only(s.Languages); err != nil {
		return nil, wrongFace(err)
	}
	return languages, nil
}

// wrongFace says that a setting of the pages is wrong.
func wrongFace(err error) error {
	return stele.Errorf("make pages", stele.ID{}, stele.Invalid, "face.setting-wrong", "a setting of the site's pages is wrong; see site-name and those after it in 'stele config list': {cause}", err)
}

// readTexts reads the operator's texts from a folder. A folder without any is a mistake.
func readTexts(folder string, languages *language.Catalog) (map[string]map[string]string, error) {
	texts := make(map[string]map[string]string)
	for _, name := range web.TextNames() {
		for _, tag := range languages.Tags() {
			content, err := readBounded(filepath.Join(folder, name+"."+tag+".md"), web.MaxText+1)
			if errors.Is(err, fs.ErrNotExist) {
				continue
			} else if err != nil {
				return nil, err
			}
			if len(content) > web.MaxText {
				return nil, stele.Messagef("face.text-too-large", "the text {name} has more than {most} bytes; shorten it", name+"."+tag+".md", web.MaxText)
			}
			if texts[name] == nil {
				texts[name] = make(map[string]string)
			}
			texts[name][tag] = string(content)
		}
	}
	if len(texts) == 0 {
		return nil, stele.Messagef("face.no-texts", "the folder {folder} has none of the texts, such as about.en.md", folder)
	}
	return texts, nil
}

// readBounded reads the beginning of a file.
func readBounded(name string, most int64) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, most))
}
