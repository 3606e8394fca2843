package top

import (
	"cmp"
	"math"
	"slices"
	"strconv"
)

// Picture is how a server is. Rates are a second, between two readings; shares are of 1. A
// number that the server does not have is left out.
type Picture struct {
	Time    string `json:"time"`
	Version string `json:"version,omitempty"`
	Ready   bool   `json:"ready"`
	Sealed  bool   `json:"sealed,omitempty"`

	Names      float64 `json:"names"`
	Namespaces float64 `json:"namespaces"`
	Changes    float64 `json:"changes"`

	Redirects    float64  `json:"redirects"`
	Other        float64  `json:"other"` // other answers over the web that are not errors
	ClientErrors float64  `json:"clientErrors"`
	ServerErrors float64  `json:"serverErrors"`
	Slowest      *float64 `json:"redirectSeconds99,omitempty"` // 99 of 100 redirects took less
	Connections  float64  `json:"connections"`

	DNS         *float64           `json:"dns,omitempty"`
	DNSFailures float64            `json:"dnsFailures,omitempty"`
	Zones       float64            `json:"zones,omitempty"`
	Secondaries map[string]float64 `json:"secondaries,omitempty"`
	OldestCopy  float64            `json:"oldestCopySeconds,omitempty"`
	Handle      *float64           `json:"handle,omitempty"`

	Commits  float64  `json:"commits"`
	Refused  float64  `json:"commitsRefused"`
	Failed   float64  `json:"commitsFailed"`
	Waiting  float64  `json:"commitsWaiting"`
	Writing  *float64 `json:"writeSeconds,omitempty"` // the mean
	Bytes    float64  `json:"bytes"`
	Free     float64  `json:"freeBytes"`
	Reserve  float64  `json:"reserveBytes"`
	Unmerged float64  `json:"unmergedBytes"`

	Hits map[string]float64 `json:"cacheHits"` // share, by cache; of those that were asked

	LogBehind     *float64 `json:"logBehind,omitempty"`
	CheckpointAge *float64 `json:"checkpointAgeSeconds,omitempty"`
	SearchBehind  float64  `json:"searchBehind"`
	FollowBehind  float64  `json:"followBehind"`

	Checked      float64 `json:"linksChecked"`
	LinksWaiting float64 `json:"linksWaiting"`
	Jobs         float64 `json:"jobs"`
	Mail         float64 `json:"mailWaiting"`

	CPU    float64 `json:"cpu"` // processors in use
	Memory float64 `json:"memoryBytes"`
	Files  float64 `json:"openFiles"`
}

// between has two readings of a server.
type between struct {
	before, now *Reading
	seconds     float64
}

// rate returns how much a counter grew in a second. One that fell was begun anew.
func (b *between) rate(name string, labels ...string) float64 {
	grown := b.grown(name, labels...)
	if b.seconds <= 0 {
		return 0
	}
	return grown / b.seconds
}

func (b *between) grown(name string, labels ...string) float64 {
	now, before := b.now.Sum(name, labels...), b.before.Sum(name, labels...)
	if now < before {
		before = 0
	}
	return now - before
}

// optional returns a pointer to a number if the server has the metric.
func (b *between) optional(name string, value float64) *float64 {
	if !b.now.Has(name) {
		return nil
	}
	return &value
}

// New compares two readings.
func New(before, now *Reading) *Picture {
	b := &between{before, now, now.At.Sub(before.At).Seconds()}
	const requests = "stele_http_requests_total"
	p := &Picture{
		Time: now.At.UTC().Format("2006-01-02T15:04:05Z"), Ready: now.Sum("stele_ready") == 1, Sealed: now.Sum("stele_sealed") == 1,
		Names: now.Sum("stele_names"), Namespaces: now.Sum("stele_namespaces"), Changes: now.Sum("stele_changes"),
		Redirects:    b.rate(requests, `route="identifier"`, `status="3xx"`),
		ClientErrors: b.rate(requests, `status="4xx"`), ServerErrors: b.rate(requests, `status="5xx"`),
		Connections: now.Sum("stele_http_connections"),
		Commits:     b.rate("stele_store_commits_total", `result="kept"`), Refused: b.rate("stele_store_commits_total", `result="refused"`), Failed: b.rate("stele_store_commits_total", `result="failed"`),
		Waiting: now.Sum("stele_store_queue"), Bytes: now.Sum("stele_store_bytes"), Free: now.Sum("stele_store_free_bytes"), Reserve: now.Sum("stele_store_reserve_bytes"), Unmerged: now.Sum("stele_store_unmerged_bytes"),
		SearchBehind: now.Sum("stele_search_behind"), FollowBehind: now.Sum("stele_follow_behind"),
		Checked: b.rate("stele_links_checked_total"), LinksWaiting: now.Sum("stele_links_waiting"), Jobs: now.Sum("stele_jobs_open"), Mail: now.Sum("stele_mail_waiting"),
		CPU: b.rate("process_cpu_seconds_total"), Memory: now.Sum("process_resident_memory_bytes"), Files: now.Sum("process_open_fds"),
		Hits: make(map[string]float64),
	}
	for _, s := range now.samples["stele_build_info"] {
		p.Version = s.label("version")
	}
	p.Other = max(0, b.rate(requests)-p.Redirects-p.ClientErrors-p.ServerErrors)
	p.Slowest = b.quantile("stele_http_request_duration_seconds", 0.99, `route="identifier"`)
	if groups := b.grown("stele_store_groups_total"); groups > 0 {
		mean := b.grown("stele_store_writing_seconds_total") / groups
		p.Writing = &mean
	}
	p.addNames(b)
	p.addHits(b)
	p.LogBehind = b.optional("stele_log_behind", now.Sum("stele_log_behind"))
	p.CheckpointAge = b.optional("stele_log_checkpoint_age_seconds", now.Sum("stele_log_checkpoint_age_seconds"))
	return p
}

// addNames adds the name server and the Handle protocol.
func (p *Picture) addNames(b *between) {
	p.DNS = b.optional("stele_dns_udp_total", b.rate("stele_dns_answers_total"))
	p.DNSFailures = b.rate("stele_dns_answers_total", `rcode="SERVFAIL"`)
	p.Zones, p.OldestCopy = b.now.Sum("stele_zones"), b.now.Max("stele_secondary_behind_seconds")
	for _, s := range b.now.samples["stele_secondaries"] {
		if s.value > 0 {
			if p.Secondaries == nil {
				p.Secondaries = make(map[string]float64)
			}
			p.Secondaries[s.label("state")] += s.value
		}
	}
	p.Handle = b.optional("stele_handle_udp_total", b.rate("stele_handle_udp_total")+b.rate("stele_handle_tcp_total")+b.rate("stele_handle_http_total"))
}

// addHits adds the shares of look-ups that caches answered.
func (p *Picture) addHits(b *between) {
	add := func(name string, hits, misses float64) {
		if all := hits + misses; all > 0 {
			p.Hits[name] = hits / all
		}
	}
	for _, cache := range []string{"redirects", "records", "blocks"} {
		label := `cache="` + cache + `"`
		add(cache, b.grown("stele_cache_hits_total", label), b.grown("stele_cache_misses_total", label))
	}
	add("dns", b.grown("stele_dns_hits_total"), b.grown("stele_dns_misses_total"))
}

// quantile returns below which value a share of the observations of a histogram was, as
// Prometheus estimates it; nil if there were none.
func (b *between) quantile(name string, share float64, labels ...string) *float64 {
	type bucket struct{ upTo, count float64 }
	var list []bucket
	for _, s := range b.now.samples[name+"_bucket"] {
		all := true
		for _, l := range labels {
			all = all && s.has(l)
		}
		upTo, err := strconv.ParseFloat(s.label("le"), 64)
		if !all || err != nil {
			continue
		}
		list = append(list, bucket{upTo, b.grown(name+"_bucket", append([]string{`le="` + s.label("le") + `"`}, labels...)...)})
	}
	slices.SortFunc(list, func(a, b bucket) int { return cmp.Compare(a.upTo, b.upTo) })
	if len(list) == 0 || list[len(list)-1].count <= 0 {
		return nil
	}
	wanted, from, below := share*list[len(list)-1].count, 0.0, 0.0
	for _, one := range list {
		if one.count >= wanted {
			at := from
			if !math.IsInf(one.upTo, 1) && one.count > below {
				at += (one.upTo - from) * (wanted - below) / (one.count - below)
			}
			return &at
		}
		from, below = one.upTo, one.count
	}
	return &from
}
