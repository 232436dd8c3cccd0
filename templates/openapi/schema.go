package openapi

import (
	"fmt"
	"slices"
	"time"

	json "github.com/goccy/go-json"

	"github.com/followpress/followpress/internal/rawjson"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/routes"
	"github.com/followpress/followpress/site/rules"
)

// A schema is a JSON Schema, as OpenAPI 3.1 has it.
type schema map[string]any

// A member is a member of a JSON object.
type member struct {
	name     string
	schema   schema
	optional bool
}

func m(name string, s schema) member        { return member{name: name, schema: s} }
func optional(name string, s schema) member { return member{name, s, true} }

// properties keep the order that answers have.
type properties []member

// MarshalJSON writes an object with a member for each property.
func (p properties) MarshalJSON() ([]byte, error) {
	text := []byte{'{'}
	for i, member := range p {
		if i > 0 {
			text = append(text, ',')
		}
		value, err := json.MarshalWithOption(member.schema, json.DisableHTMLEscape())
		if err != nil {
			return nil, err
		}
		text = append(append(rawjson.AppendString(text, member.name), ':'), value...)
	}
	return append(text, '}'), nil
}

// object describes an object with these members and no others.
func object(members ...member) schema {
	required := []string{}
	for _, m := range members {
		if !m.optional {
			required = append(required, m.name)
		}
	}
	return schema{"type": "object", "properties": properties(members), "required": required, "additionalProperties": false}
}

func array(items schema) schema { return schema{"type": "array", "items": items} }

// upTo describes an array of at most n items.
func upTo(n int, items schema) schema {
	return schema{"type": "array", "items": items, "maxItems": n}
}

func anyOf(schemas ...schema) schema { return schema{"anyOf": schemas} }

// ref refers to one of components.
func ref(name string) schema { return schema{"$ref": refPrefix + name} }

const refPrefix = "#/components/schemas/"

// about adds a description, in a copy.
func (s schema) about(text string) schema {
	described := schema{"description": text}
	for name, value := range s {
		described[name] = value
	}
	return described
}

// orNull allows null too, for a schema with one type.
func (s schema) orNull() schema {
	nullable := schema{}
	for name, value := range s {
		nullable[name] = value
	}
	nullable["type"] = []any{s["type"], "null"}
	return nullable
}

const (
	addressForm = "^0x[0-9a-f]{40}$"
	decimalForm = "^(0|[1-9][0-9]*)$"
	tokenForm   = "^(0|[1-9][0-9]{0,77})$"
	// timeForm allows years of more digits: the time of a profile is any number of milliseconds.
	timeForm = "^-?[0-9]{4,}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\\.[0-9]{3}Z$"
)

func text() schema        { return schema{"type": "string"} }
func boolean() schema     { return schema{"type": "boolean"} }
func texts() schema       { return schema{"type": "object", "additionalProperties": text()} }
func number() schema      { return schema{"type": "integer", "minimum": 0} }
func address() schema     { return schema{"type": "string", "pattern": addressForm} }
func decimal() schema     { return schema{"type": "string", "pattern": decimalForm} }
func tokenID() schema     { return schema{"type": "string", "pattern": tokenForm} }
func moment() schema      { return schema{"type": "string", "format": "date-time", "pattern": timeForm} }
func hexadecimal() schema { return schema{"type": "string", "pattern": "^0x([0-9a-f]{2})*$"} }

func picture() schema { return schema{"type": "string"}.about("an SVG picture, black on white") }

func rank() schema { return decimal().about("a position, from 1; 0 means unranked") }

func tagsMember() member {
	return m("tags", array(text()).about("sorted by bytes, without duplicates"))
}

func primaryList() member {
	return m("primary_list", tokenID().orNull().about("null if the account has no primary list"))
}

// profileMembers returns those of the whole profile.
func profileMembers() []member {
	return []member{
		m("name", text()), m("avatar", text()), m("header", text()), m("display", text()),
		m("records", texts().about("texts of the profile, by key")), m("chains", texts().about("addresses on other chains")),
		m("fresh", schema{"type": "integer", "format": "int64"}.about("time of the profile, in milliseconds since 1970")),
		m("resolver", text()), m("errors", texts().about("errors of the source of the profile, by key")),
	}
}

func shortProfile() member {
	return m("ens", object(m("name", text()), m("avatar", text())).about("a missing text is empty"))
}

func countMembers() []member {
	return []member{m("followers_count", number()), m("following_count", number())}
}

func stateMembers(of string) []member {
	return []member{
		m("is_following", boolean().about(of+" follows the follower")),
		m("is_blocked", boolean().about(of+" tags the follower block")),
		m("is_muted", boolean().about(of+" tags the follower mute")),
	}
}

// Texts that are null when there is none.
func nameAvatarHeader() []member {
	return []member{m("name", text().orNull()), m("avatar", text().orNull()), m("header", text().orNull())}
}

// heldVersion returns the version of the record in which a list holds an account.
func heldVersion() schema {
	var versions []uint32
	for _, k := range rules.HeldKinds() {
		versions = append(versions, k.Version)
	}
	if len(versions) == 1 {
		return schema{"type": "integer", "const": versions[0]}
	}
	return schema{"type": "integer", "enum": versions}
}

// followed returns the members of a record of an account.
func followed() []member {
	return []member{
		m("version", heldVersion()), m("record_type", schema{"type": "string", "const": rules.TypeAddress}),
		m("data", address()), m("address", address()), tagsMember(),
	}
}

// following returns the members of a follower's record.
func following() []member {
	return []member{
		m("efp_list_nft_token_id", tokenID().about("the follower's primary list")), m("address", address().about("the follower")),
	}
}

func boardRow(field string) schema {
	return object(m("rank", schema{"type": "integer", "minimum": 1}), m("address", address()), m(field, decimal()))
}

// components returns the schemas that others refer to. A description includes only the ones it needs.
func components(c site.Config) map[string]schema {
	ranks := []member{m("mutuals_rank", rank()), m("followers_rank", rank()), m("following_rank", rank()), m("top8_rank", rank()), m("blocks_rank", rank())}
	found := append(followed(), shortProfile())
	if !c.EFP() {
		found = slices.DeleteFunc(found, func(m member) bool { return m.name == "address" })
	}
	return map[string]schema{
		"Problem": object(
			m("type", text()), m("title", text()), m("status", schema{"type": "integer", "minimum": 400, "maximum": 599}),
			m("detail", text()), m("response", text().about("the same as detail")),
		).about("problem details, RFC 9457"),

		"Record": object(
			m("version", schema{"type": "integer", "minimum": 0, "maximum": 1<<32 - 1}), m("record_type", schema{"type": "string", "minLength": 1}),
			m("data", hexadecimal()), optional("tags", tagsMember().schema),
		).about("an entry of a list; includeTags=false omits tags"),
		"Profile": object(profileMembers()...).about("a profile; a missing text is empty"),
		"Ranks":   object(ranks...),
		"Details": object(m("address", address()), m("ens", ref("Profile")), m("ranks", ref("Ranks")), primaryList()),
		"Event": object(
			m("id", number()), m("fancy_id", text()), m("name", text()), m("event_url", text()), m("image_url", text()), m("country", text()),
			m("city", text()), m("description", text()), m("year", schema{"type": "integer"}), m("start_date", text()), m("end_date", text()),
			m("expiry_date", text()),
		),
		"Collection": object(m("event", ref("Event")), m("tokenId", tokenID()), m("owner", address())),
		"Badge": object(
			m("eventId", decimal()), m("participated", boolean()),
			m("collection", anyOf(ref("Collection"), schema{"type": "null"}).about("null for an account without the badge")),
		),

		"AccountProfile": object(append(profileMembers(), m("updated_at", moment().about("the value of fresh, as a time")))...).about("a profile; a missing text is empty"),
		"ENS": object(
			m("name", schema{"type": "string", "minLength": 1}), m("address", address()), m("avatar", text()), m("records", texts()), m("updated_at", moment()),
		).about("the profile of an account that has a name"),
		"NoENS": object(
			m("name", schema{"type": "null"}), m("address", address()), m("avatar", schema{"type": "null"}), m("records", schema{"type": "null"}),
			m("updated_at", schema{"type": "null"}),
		).about("an account without a name"),
		"Counts": object(countMembers()...),

		"Followed": object(followed()...).about("a record of an account"),
		"FollowedWithENS": object(append(followed(), isMutual(),
			optional("is_blocked", boolean().about("only with include=blocked")), optional("is_muted", boolean().about("only with include=muted")),
			optional("ens", ref("ENS")))...).about("a record of an account; include=ens adds ens if the account has a name"),
		"FollowedInSearch": object(found...).about("a record of an account, with its name"),
		"FollowerOfUser":   follower("the user's primary list"),
		"FollowerOfList":   follower("the list"),
		"FollowerInSearch": object(slices.Concat(following(), []member{shortProfile(), tagsMember()}, stateMembers("the list, or the user's primary list,"))...),
		"State":            object(m("follow", boolean()), m("block", boolean()), m("mute", boolean())).about("whether a list follows, blocks or mutes an account"),
		"ListState":        object(m("token_id", tokenID()), m("address", address()), m("state", ref("State"))),
		"UserState":        object(m("token_id", tokenID().orNull().about("null if the user has no primary list")), m("address", address()), m("state", ref("State"))),
		"UnknownState": object(
			m("token_id", tokenID()), m("address", text().orNull().about("the name or null that was sent")), m("state", schema{"type": "null"}), m("error", text()),
		).about("the item for an unknown name, or for null"),
		"TagCount":       object(m("tag", text()), m("count", schema{"type": "integer", "minimum": 1})),
		"TaggedAddress":  object(m("address", address()), m("tag", text())),
		"CommonFollower": object(m("address", address()), m("name", text()), m("avatar", text()), m("header", text()), m("mutuals_rank", rank())),
		"Ranked": object(slices.Concat(
			[]member{m("address", address())}, nameAvatarHeader(),
			[]member{
				m("mutuals_rank", rank()), m("followers_rank", rank()), m("following_rank", rank()), m("blocks_rank", rank()), m("top8_rank", rank()),
				m("mutuals", decimal()), m("following", decimal()), m("followers", decimal()),
				m("blocks", decimal().about("number of accounts that block this account")), m("top8", decimal()), m("updated_at", moment()),
			},
		)...),
		"Recommended": object(
			m("name", text().orNull()), m("address", address()), m("avatar", text().orNull()), m("header", text().orNull()), m("class", text().orNull()),
		),
		"RecommendedDetails": object(
			m("address", address()), m("ens", object(m("name", text()), m("avatar", text()), m("records", texts()))), m("stats", ref("Counts")), m("ranks", ref("Ranks")),
		),
		"Discovered": object(slices.Concat(
			[]member{m("address", address())}, nameAvatarHeader(), []member{m("followers", decimal()), m("following", decimal())},
		)...),
		"Operation": object(
			m("address", address().about("the other account: the owner of the acting list, or the target of this list's operation")), m("name", text().orNull()), m("avatar", text().orNull()),
			m("token_id", tokenID().about("the list that acted")), m("action", schema{"enum": []string{"follow", "unfollow", "tag", "untag"}}),
			m("opcode", schema{"type": "integer", "minimum": 1, "maximum": 4}), m("op", schema{"type": "string", "pattern": "^0x010[1-4]0101([0-9a-f]{2}){20,}$"}.about("the operation's bytes in hexadecimal")),
			m("tag", text().about("empty for follow and unfollow")), m("updated_at", moment().about("time of the block")),
		).about("an operation that added or removed a record or a tag"),
	}
}

func isMutual() member {
	return optional("is_mutual", boolean().about("whether the two accounts follow each other; only with include=mutuals"))
}

func follower(of string) schema {
	return object(slices.Concat(
		following(), []member{tagsMember()}, stateMembers(of),
		[]member{m("updated_at", moment().about("when the record was added; 1970 if that is unknown")), isMutual(), optional("ens", ref("ENS"))},
	)...).about("a follower; include=ens adds ens if the account has a name")
}

// summary describes tags, who gives or has them, and how often.
func summary(subject member) schema {
	return object(
		subject, m("tags", array(text()).about("sorted by bytes, without duplicates")), m("tagCounts", array(ref("TagCount")).about("the most frequent first")),
		m("taggedAddresses", array(ref("TaggedAddress"))),
	)
}

// boardFields name the member of a leaderboard's rows that has the count.
var boardFields = map[site.Board]string{
	site.Followers: "followers_count", site.Following: "following_count", site.Blocked: "blocked_by_count", site.Blocks: "blocks_count",
	site.Muted: "muted_by_count", site.Mutes: "mutes_count", site.Mutuals: "mutuals_count",
}

// operations describes operations on a page, and their totals.
func operations(name string, entries schema) schema {
	counts := []member{m("interval", schema{"enum": intervals()}), m("opcode", schema{"enum": []string{"all", "1", "2", "3", "4"}}.about("the requested operations")), m("total", number())}
	for _, action := range []string{"follows", "unfollows", "tags", "untags"} {
		counts = append(counts, m("total_"+action, number()))
	}
	return object(m("summary", object(counts...).about("counts the entries of this page")), m(name, entries))
}

// intervals returns the texts of all intervals.
func intervals() (all []string) {
	rule := site.Params()[site.ParamInterval]
	for _, word := range append([]string{rule.Neutral}, rule.Values...) {
		all = append(all, fmt.Sprintf("%d:00:00(hrs)", site.Interval(word)/time.Hour))
	}
	return all
}

// answers returns the schemas of the answers of all routes of the API.
func answers(c site.Config) map[routes.ID]schema {
	// most describes the array of a page.
	most := func(id routes.ID, item schema) schema {
		_, n := c.Limits(site.RouteBy(id))
		return upTo(n, item)
	}
	page := func(id routes.ID, name, item string) schema { return object(m(name, most(id, ref(item)))) }
	all := func(name, item string) schema { return object(m(name, array(ref(item)))) }
	ranked := func(id routes.ID) schema {
		return object(m("last_updated", moment()), m("results", most(id, ref("Ranked"))))
	}
	var boards []schema
	for _, board := range c.Boards() {
		boards = append(boards, most(routes.Leaderboard, boardRow(boardFields[board])).about("the leaderboard "+string(board)))
	}
	batch := upTo(site.MaxBatch, anyOf(ref("ListState"), ref("UnknownState"))).about("in the order of the body")
	batch["minItems"] = 1
	user, list := m("address", address()), m("token_id", tokenID())

	schemas := map[routes.ID]schema{
		routes.Leaderboard: anyOf(boards...),
		routes.Records:     all("records", "Record"),
		routes.Details:     ref("Details"),
		routes.Badges:      object(m(c.BadgesField, array(ref("Badge")))),

		routes.UserAccount: object(user, m("ens", ref("AccountProfile"))),
		routes.ListAccount: object(user, m("ens", ref("AccountProfile")), m("is_primary_list", boolean()), primaryList()),
		routes.UserStats:   ref("Counts"),
		routes.ListStats:   ref("Counts"),
		routes.UserLists:   object(primaryList(), m("lists", array(tokenID()).about("ascending by number"))),

		routes.UserPrimaryList: object(primaryList()),
		routes.UserENS:         object(m("ens", anyOf(ref("ENS"), ref("NoENS")))),
		routes.UserSimpleProfile: object(slices.Concat(
			[]member{user, m("display_name", schema{"type": "string", "minLength": 1}.about("the name, else the address")), m("avatar", text())},
			countMembers(), []member{m("url", schema{"type": "string", "format": "uri"}.about("the person's page"))},
		)...),
		routes.ExportState:            all("following", "Followed"),
		routes.UserFollowingAddresses: array(address()),
		routes.ListFollowingAddresses: array(address()),

		routes.UserTags: summary(user), routes.UserTaggedAs: summary(user),
		routes.ListTags: summary(list), routes.ListTaggedAs: summary(list),

		routes.UserFollowerState: object(m("addressUser", address()), m("addressFollower", address()), m("state", ref("State"))),
		routes.ListFollowerState: ref("ListState"),
		routes.ListButtonState:   ref("ListState"),
		routes.UserButtonState:   ref("UserState"),
		routes.ButtonStateBatch:  batch,
		routes.CommonFollowers: object(
			m("results", most(routes.CommonFollowers, ref("CommonFollower"))), m("length", number().about("number of all accounts, regardless of limit")),
		),

		routes.Relationship: object(m("source", address()), m("target", address()), m("state", object(
			m("is_following", boolean()), m("is_followed_by", boolean()), m("is_blocked", boolean()), m("is_blocked_by", boolean()),
			m("is_muted", boolean()), m("is_muted_by", boolean()),
		).about("the source's primary list about the target; members with by: the target's about the source"))),
		routes.Relationships: object(m("relationships", most(routes.Relationships, object(m("address", address()), tagsMember())))),
		routes.UserAvatar:    {}, // no body

		routes.Ranked:       ranked(routes.Ranked),
		routes.RankedAll:    ranked(routes.RankedAll),
		routes.RankedSearch: ranked(routes.RankedSearch),
		routes.RankedCount:  object(m("leaderboardCount", decimal())),
		routes.DataFile:     {"description": "Apache Parquet"},
		routes.DataPackage:  {"type": "object", "description": "a data package (datapackage.org)"},
		routes.Stats: object(m("stats", object(
			m("address_count", decimal()), m("list_count", decimal()), m("list_op_count", decimal()), m("user_count", decimal()),
		))),
		routes.UserQR: picture(), routes.ListQR: picture(),
		routes.Discover: object(m("latestFollows", upTo(site.DiscoverMax, ref("Discovered")))),

		routes.UserNotifications: operations("notifications", most(routes.UserNotifications, ref("Operation"))),
		routes.ListActivity:      operations("activity", most(routes.ListActivity, ref("Operation"))),
		routes.NotificationsFeed: text().about("an Atom feed (RFC 4287)"),
	}
	schemas[routes.UserRecords], schemas[routes.UserDetails], schemas[routes.UserBadges] =
		schemas[routes.Records], schemas[routes.Details], schemas[routes.Badges]
	for id, p := range map[routes.ID]struct{ name, item string }{
		routes.ListSearch: {"following", "FollowedInSearch"}, routes.UserSearch: {"following", "FollowedInSearch"},
		routes.UserFollowing: {"following", "FollowedWithENS"}, routes.UserAllFollowing: {"following", "FollowedWithENS"},
		routes.ListFollowing: {"following", "FollowedWithENS"}, routes.ListAllFollowing: {"following", "FollowedWithENS"},
		routes.UserFollowers: {"followers", "FollowerOfUser"}, routes.UserAllFollowers: {"followers", "FollowerOfUser"},
		routes.ListFollowers: {"followers", "FollowerOfList"}, routes.ListAllFollowers: {"followers", "FollowerOfList"},
		routes.UserMutuals:         {"mutuals", "FollowerOfUser"},
		routes.UserLatestFollowers: {"followers", "FollowerOfUser"}, routes.ListLatestFollowers: {"followers", "FollowerOfList"},
		routes.UserSearchFollowers: {"followers", "FollowerInSearch"}, routes.ListSearchFollowers: {"followers", "FollowerInSearch"},
		routes.UserRecommended: {"recommended", "Recommended"}, routes.ListRecommended: {"recommended", "Recommended"},
		routes.UserRecommendedDetails: {"recommended", "RecommendedDetails"}, routes.ListRecommendedDetails: {"recommended", "RecommendedDetails"},
	} {
		schemas[id] = page(id, p.name, p.item)
	}
	return schemas
}
