"""People and what they can do, found by skill and level. From the quick reference of a table of skills on GitHub (glad-entities)."""

from __future__ import annotations

from keygraph import ID, Graph, Index, Many, Table, edge, node

gsi1 = Index("GSI1", "GSI1PK", "GSI1SK")


@node("USER#{username}", "PROFILE")
class User:
    username: ID
    full_name: str
    skills: Many[UserSkill]


@node("SKILL#{skill_name}", "METADATA")
class Skill:
    skill_name: ID
    category: str
    people: Many[UserSkill]


@edge("{user}", "{skill}", gsi1("{skill}", "LEVEL#{level}#{user}"))
class UserSkill:
    user: User
    skill: Skill
    level: int


graph = Graph(
    Table("glad-entities", partition_key="PK", sort_key="SK", indexes=[gsi1]),
    User,
    Skill,
    UserSkill,
    type_attribute="EntityType",
)

ITEMS = """
{"PK": "USER#ada", "SK": "PROFILE", "EntityType": "User", "full_name": "Ada L."}
{"PK": "USER#ben", "SK": "PROFILE", "EntityType": "User", "full_name": "Ben M."}
{"PK": "SKILL#python", "SK": "METADATA", "EntityType": "Skill", "category": "language"}
{"PK": "SKILL#sql", "SK": "METADATA", "EntityType": "Skill", "category": "language"}
{"PK": "USER#ada", "SK": "SKILL#python", "GSI1PK": "SKILL#python", "GSI1SK": "LEVEL#5#USER#ada", "EntityType": "UserSkill", "level": 5}
{"PK": "USER#ada", "SK": "SKILL#sql", "GSI1PK": "SKILL#sql", "GSI1SK": "LEVEL#2#USER#ada", "EntityType": "UserSkill", "level": 2}
{"PK": "USER#ben", "SK": "SKILL#python", "GSI1PK": "SKILL#python", "GSI1SK": "LEVEL#3#USER#ben", "EntityType": "UserSkill", "level": 3}
"""

ASKED = """
Who knows a language at that level
{ skill(skillName: "python") { people(level: {eq: 5}) { nodes { fullName skills { totalCount } } } } }
{"skill": {"people": {"nodes": [{"fullName": "Ada L.", "skills": {"totalCount": 2}}]}}}
"""
