package desk

import (
	"net/http"

	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/web/deskpage"
)

// speak chooses the language that the user has set, if there is one. A user whose preferences can't be read
// gets the language that the browser asks for.
func (c *call) speak() {
	if !c.who.IsKnown() {
		return
	}
	p, err := c.h.o.Registrar.Preferences(c.ctx)
	if err != nil {
		if c.r.Context().Err() == nil {
			c.h.o.Log.WarnContext(c.ctx, "the preferences of a user can't be read", "error", err.Error())
		}
		return
	}
	c.preferred = p.Language
	if l := c.h.o.Languages.Get(p.Language); l != nil {
		c.language = l
	}
}

// showSettings shows the preferences of the user.
func (c *call) showSettings() error {
	v := c.settingsPage()
	if err := c.mailSettings(v); err != nil {
		return err
	}
	return c.show(http.StatusOK, "settings", v)
}

// settingsPage returns the page with the choice of a language.
func (c *call) settingsPage() *deskpage.Settings {
	v := &deskpage.Settings{Frame: c.frame("settings.title", "account")}
	for _, l := range c.h.o.Languages.Languages() {
		v.Tongues = append(v.Tongues, deskpage.Option{Value: l.Tag, Text: l.Name, Chosen: l.Tag == c.preferred})
	}
	return v
}

// saveSettings keeps the preferences of the user.
func (c *call) saveSettings() error {
	if err := c.readForm(); err != nil {
		return err
	}
	if err := c.prefer(c.r.PostForm.Get("language")); err != nil {
		return err
	}
	c.redirect(Root + "settings?done=settings-saved")
	return nil
}

// prefer keeps the language that the user wants; one that there is not stands for none.
func (c *call) prefer(tag string) error {
	if c.h.o.Languages.Get(tag) == nil {
		tag = ""
	}
	_, err := c.h.o.Registrar.SetPreferences(c.ctx, func(p *auth.Preferences) { p.Language = tag })
	return err
}
