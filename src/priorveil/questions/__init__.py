"""What people are asked: questions, surveys and campaigns, and the readers of their files."""

from priorveil.questions.choices import MultipleChoice, SingleChoice
from priorveil.questions.number import NumberQuestion

KINDS = (SingleChoice, MultipleChoice, NumberQuestion)  # a document knows each by its `kind`
